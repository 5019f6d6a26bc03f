"""Decoding ahead: background threads read the clips of coming batches while the model works."""

from __future__ import annotations

import time
from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.decoders import DECODERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from lmms_eval_captions.model_wrappers.ordering import PlannedCaption
    from lmms_eval_captions.model_wrappers.video.clip import Clip

_PAUSE_S: Final = 0.02

R = TypeVar("R")

Decoded = dict["Path", "Clip | str"]
"""A batch's clips, or in words why one cannot be read."""


class DecodeAhead(Generic[R]):
    """Iterates over prepared batches, in order; at most ``n_ahead`` wait beside the one in use.

    A clip that several batches ask for in a row is decoded once and dropped after the last of
    them, so that memory holds the frames of ``n_ahead + 1`` batches at most.

    Args:
        batches: What is to be captioned, in order.
        decode: Reads one clip; called in several threads at once.
        prepare: Turns a decoded batch into the model's inputs, in a thread of its own.
        n_threads: Clips decoded at once, >= 1.
        n_ahead: Batches made ready in advance, >= 1.
    """

    def __init__(
        self,
        batches: Sequence[Sequence[PlannedCaption]],
        *,
        decode: Callable[[Path], Clip],
        prepare: Callable[[Sequence[PlannedCaption], Decoded], R],
        n_threads: int,
        n_ahead: int = 2,
    ) -> None:
        self._batches = batches
        self._decode = decode
        self._prepare = prepare
        self._n_threads = n_threads
        self._n_ahead = n_ahead
        self._clips: dict[Path, Future[Clip | str]] = {}
        self._users: Counter[Path] = Counter()

    def __iter__(self) -> Iterator[R]:
        decoders = ThreadPoolExecutor(self._n_threads, thread_name_prefix="decode")
        preparer = ThreadPoolExecutor(1, thread_name_prefix="prepare")
        ready: deque[tuple[Sequence[PlannedCaption], Future[R]]] = deque()
        left = iter(self._batches)

        def start_next() -> None:
            batch = next(left, None)
            if batch is not None:
                clips = self._start(batch, decoders)
                ready.append((batch, preparer.submit(self._make, batch, clips)))

        is_done = False
        try:
            for _ in range(self._n_ahead):
                start_next()
            while ready:
                batch, future = ready.popleft()
                prepared = future.result()
                del future
                # In this order: the next batch may go on with a clip of this one.
                start_next()
                self._drop(batch)
                yield prepared
                del prepared
            is_done = True
        finally:
            decoders.shutdown(wait=is_done, cancel_futures=True)
            # After Ctrl-C or an error nobody waits for what is being read.
            while not all(clip.done() for clip in self._clips.values()):
                DECODERS.stop()
                time.sleep(_PAUSE_S)
            preparer.shutdown(wait=True, cancel_futures=True)

    def _start(
        self, batch: Sequence[PlannedCaption], decoders: ThreadPoolExecutor
    ) -> dict[Path, Future[Clip | str]]:
        """Queue the batch's clips that are not there yet."""
        paths = list(dict.fromkeys(planned.path for planned in batch))
        for path in paths:
            if path not in self._clips:
                self._clips[path] = decoders.submit(self._try, path)
        self._users.update(paths)
        return {path: self._clips[path] for path in paths}

    def _drop(self, batch: Sequence[PlannedCaption]) -> None:
        """Let go of the batch's clips that no batch in the making uses."""
        for path in {planned.path for planned in batch}:
            self._users[path] -= 1
            if not self._users[path]:
                del self._users[path], self._clips[path]

    def _try(self, path: Path) -> Clip | str:
        try:
            return self._decode(path)
        except DataError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - a clip must not cost the others their captions
            return f"expected a readable video, reading it failed: {error!r}"

    def _make(self, batch: Sequence[PlannedCaption], clips: dict[Path, Future[Clip | str]]) -> R:
        return self._prepare(batch, {path: future.result() for path, future in clips.items()})
