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

    from lmms_eval_captions.model_wrappers.caption_jobs import Shown, Source
    from lmms_eval_captions.model_wrappers.ordering import PlannedCaption

_PAUSE_S: Final = 0.02

R = TypeVar("R")

Decoded = dict["Source", "Shown | str"]
"""What a batch's sources show, or in words why one cannot be read."""


class DecodeAhead(Generic[R]):
    """Iterates over prepared batches, in order; at most ``n_ahead`` wait beside the one in use.

    A clip that several batches ask for in a row is decoded once and dropped after the last of
    them, so that memory holds the frames of ``n_ahead + 1`` batches at most.

    Args:
        batches: What is to be captioned, in order.
        decode: Reads one source; called in several threads at once.
        prepare: Turns a decoded batch into the model's inputs, in threads of its own.
        n_threads: Clips decoded at once, >= 1.
        n_ahead: Batches made ready in advance, >= 1.
        n_preparers: Batches prepared at once, >= 1.
    """

    def __init__(
        self,
        batches: Sequence[Sequence[PlannedCaption]],
        *,
        decode: Callable[[Source], Shown],
        prepare: Callable[[Sequence[PlannedCaption], Decoded], R],
        n_threads: int,
        n_ahead: int = 2,
        n_preparers: int = 1,
    ) -> None:
        self._batches = batches
        self._decode = decode
        self._prepare = prepare
        self._n_threads = n_threads
        self._n_ahead = n_ahead
        self._n_preparers = n_preparers
        self._clips: dict[Source, Future[Shown | str]] = {}
        self._users: Counter[Source] = Counter()

    def __iter__(self) -> Iterator[R]:
        decoders = ThreadPoolExecutor(self._n_threads, thread_name_prefix="decode")
        preparer = ThreadPoolExecutor(self._n_preparers, thread_name_prefix="prepare")
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
    ) -> dict[Source, Future[Shown | str]]:
        """Queue the batch's clips that are not there yet."""
        sources = list(dict.fromkeys(planned.source for planned in batch))
        for source in sources:
            if source not in self._clips:
                self._clips[source] = decoders.submit(self._try, source)
        self._users.update(sources)
        return {source: self._clips[source] for source in sources}

    def _drop(self, batch: Sequence[PlannedCaption]) -> None:
        """Let go of the batch's clips that no batch in the making uses."""
        for source in {planned.source for planned in batch}:
            self._users[source] -= 1
            if not self._users[source]:
                del self._users[source], self._clips[source]

    def _try(self, source: Source) -> Shown | str:
        try:
            return self._decode(source)
        except DataError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - a clip must not cost the others their captions
            return f"expected a readable video, reading it failed: {error!r}"

    def _make(self, batch: Sequence[PlannedCaption], clips: dict[Source, Future[Shown | str]]) -> R:
        return self._prepare(batch, {source: future.result() for source, future in clips.items()})
