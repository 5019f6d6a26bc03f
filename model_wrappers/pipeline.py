"""From planned captions to prepared batches: ordered, decoded ahead in background threads."""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.caption_jobs import (
    Batch,
    CaptionJob,
    Shown,
    Source,
    content_of,
)
from lmms_eval_captions.model_wrappers.model_args import Generation
from lmms_eval_captions.model_wrappers.video.decoders import DECODERS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence


_PAUSE_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class PlannedCaption:
    """One caption to write, and the requests that it answers."""

    source: Source
    prompt: str
    generation: Generation
    task: str
    doc_id: int
    positions: tuple[int, ...]
    """Indices in lmms-eval's list; several if the same is asked again."""
    variant: Hashable = None
    """Difference of this task from others; see ``Captioner.variant``."""
    rows: tuple[tuple[str, str, str | None], ...] = ()
    """Task, video and aspect for each of our tasks that it is saved for."""
    draw: int = 0
    """Number among those that ask the same, if answers are drawn at random."""
    key: str = ""
    """Key of the kept caption; empty if it is not kept."""


def merge_twins(planned: Iterable[PlannedCaption]) -> list[PlannedCaption]:
    """Merge requests that ask exactly the same, unless the answer is drawn at random.

    lmms-eval repeats a rank's last request so that all ranks have equally many.
    """
    twins: dict[object, list[PlannedCaption]] = defaultdict(list)
    draws: Counter[object] = Counter()
    for asked in planned:
        same: object = asked.source, asked.prompt, asked.generation, asked.variant
        if asked.generation.do_sample:
            document = asked.task, asked.doc_id, same
            twins[document, draws[document]].append(replace(asked, draw=draws[document]))
            draws[document] += 1
        else:
            twins[same].append(asked)
    return [
        replace(
            same[0],
            positions=tuple(position for asked in same for position in asked.positions),
            rows=tuple(dict.fromkeys(row for asked in same for row in asked.rows)),
        )
        for same in twins.values()
    ]


def make_batches(
    planned: Sequence[PlannedCaption],
    batch_size: int,
    cost: Callable[[Path], float],
    together: int = 1,
) -> list[list[PlannedCaption]]:
    """Return batches of requests with equal settings, in the order in which they are best run.

    The prompts of one clip follow each other, so that it is decoded once and dropped. Costly clips
    come first: a lack of memory shows at the start, batches hold clips of like cost, and the
    estimate of the time left errs on the long side. So many prompts of one source as ``together``
    stay in one batch, even beyond ``batch_size``.
    """
    # Pictures and clips cost too differently to wait for each other.
    by_settings: dict[object, dict[Source, list[PlannedCaption]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for asked in planned:
        by_settings[asked.generation, type(asked.source)][asked.source].append(asked)
    n_unit = max(batch_size, together) if together > 1 else 1
    batches: list[list[PlannedCaption]] = []
    costs: dict[Source, float] = {
        p.source: cost(p.source) for p in planned if isinstance(p.source, Path)
    }
    for sources in by_settings.values():
        batches.append([])
        for source in sorted(sources, key=lambda source: costs.get(source, 0.0), reverse=True):
            for at in range(0, len(sources[source]), n_unit):
                unit = sources[source][at : at + n_unit]
                if batches[-1] and len(batches[-1]) + len(unit) > batch_size:
                    batches.append([])
                batches[-1] += unit
    return batches


class ReadyBatch(NamedTuple):
    """A batch whose clips are decoded."""

    planned: Sequence[PlannedCaption]
    """One per job of the batch."""
    batch: Batch | None
    """``None`` if nothing of it can be captioned."""
    broken: Sequence[tuple[PlannedCaption, str]]
    """Captions that cannot be written, and why."""


class DecodeAhead:
    """Iterates over prepared batches, in order; at most ``n_ahead`` wait next to the one in use.

    A clip that several batches ask for in a row is decoded once and dropped after the last of
    them, so that memory holds the frames of ``n_ahead + 1`` batches at most. If ``prepare`` raises
    a ``DataError``, jobs are tried one by one, and the culprits are left out.
    """

    def __init__(
        self,
        batches: Sequence[Sequence[PlannedCaption]],
        *,
        decode: Callable[[Source], Shown],
        prepare: Callable[[Sequence[CaptionJob], Generation], object],
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

    def __iter__(self) -> Iterator[ReadyBatch]:
        decoders = ThreadPoolExecutor(self._n_threads, thread_name_prefix="decode")
        preparer = ThreadPoolExecutor(self._n_preparers, thread_name_prefix="prepare")
        ready: deque[tuple[Sequence[PlannedCaption], Future[ReadyBatch]]] = deque()
        left = iter(self._batches)

        def start_next() -> None:
            batch = next(left, None)
            if batch is not None:
                sources = list(dict.fromkeys(planned.source for planned in batch))
                for source in sources:
                    if source not in self._clips:
                        self._clips[source] = decoders.submit(self._try, source)
                self._users.update(sources)
                clips = {source: self._clips[source] for source in sources}
                ready.append((batch, preparer.submit(self._make, batch, clips)))

        is_done = False
        try:
            for _ in range(self._n_ahead):
                start_next()
            while ready:
                batch, future = ready.popleft()
                prepared = future.result()
                del future
                # In this order: the next batch may continue with a clip of this one.
                start_next()
                for source in {planned.source for planned in batch}:
                    self._users[source] -= 1
                    if not self._users[source]:
                        del self._users[source], self._clips[source]
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

    def _try(self, source: Source) -> Shown | str:
        try:
            return self._decode(source)
        except DataError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - a clip must not cost the others their captions
            return f"expected a readable video, reading it failed: {error!r}"

    def _make(
        self, planned: Sequence[PlannedCaption], clips: dict[Source, Future[Shown | str]]
    ) -> ReadyBatch:
        """Prepare a batch of the clips that could be read."""
        usable: list[tuple[PlannedCaption, CaptionJob]] = []
        broken: list[tuple[PlannedCaption, str]] = []
        for asked in planned:
            shown = clips[asked.source].result()
            if isinstance(shown, str):
                broken.append((asked, shown))
                continue
            content = shown.content or content_of(len(shown.clips), asked.prompt)
            job = CaptionJob(
                shown.clips, content, asked.source, asked.task, asked.doc_id, draw=asked.draw
            )
            usable.append((asked, job))
        generation = planned[0].generation

        def prepared() -> Batch | None:
            jobs = [job for _, job in usable]
            return Batch(jobs, generation, self._prepare(jobs, generation)) if jobs else None

        try:
            batch = prepared()
        except DataError:
            tried, usable = usable, []
            for asked, job in tried:
                try:
                    self._prepare([job], generation)
                except DataError as error:
                    broken.append((asked, str(error)))
                else:
                    usable.append((asked, job))
            batch = prepared()
        return ReadyBatch([asked for asked, _ in usable], batch, broken)
