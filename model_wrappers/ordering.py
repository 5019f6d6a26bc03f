"""The order in which captions are written: batches that decode little and pad little."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lmms_eval_captions.model_wrappers.generation import Generation

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence
    from pathlib import Path

    from lmms_eval_captions.model_wrappers.caption_jobs import Message, Source


@dataclass(frozen=True, slots=True)
class PlannedCaption:
    """One caption to write, and the requests that it answers."""

    source: Source
    prompt: str
    generation: Generation
    task: str
    doc_id: int
    positions: tuple[int, ...]
    """Places in lmms-eval's list; more than one where the same is asked again."""
    variant: Hashable = None
    """What the captioner does otherwise for this task than for others; see ``Captioner``."""
    messages: tuple[Message, ...] = ()
    """The conversation; empty where it is the source's own, or the prompt is all there is."""
    draw: int = 0
    """Its number among those that ask the same, where answers are drawn at random."""
    key: bytes = b""
    """Under which the caption is kept; empty where it is not."""


def merge_twins(planned: Iterable[PlannedCaption]) -> list[PlannedCaption]:
    """Requests that ask exactly the same become one, unless the answer is drawn at random.

    lmms-eval repeats a rank's last request so that all ranks have equally many.
    """
    twins: dict[object, list[PlannedCaption]] = defaultdict(list)
    draws: Counter[object] = Counter()
    for asked in planned:
        same = asked.source, asked.prompt, asked.messages, asked.generation, asked.variant
        if asked.generation.do_sample:
            document = asked.task, asked.doc_id, same
            twins[document, draws[document]].append(replace(asked, draw=draws[document]))
            draws[document] += 1
        else:
            twins[same].append(asked)
    return [
        replace(
            same[0], positions=tuple(position for asked in same for position in asked.positions)
        )
        for same in twins.values()
    ]


def make_batches(
    planned: Sequence[PlannedCaption],
    batch_size: int,
    cost: Callable[[Source], float],
    together: int = 1,
) -> list[list[PlannedCaption]]:
    """Batches of requests with equal settings, in the order in which they are best run.

    The prompts of one clip follow each other, so that it is decoded once and dropped; costly clips
    come first, so that a lack of memory shows at the start, batches hold clips of like cost, and
    the estimate of the time left errs on the long side.

    Args:
        planned: The captions to write.
        batch_size: Most captions of a batch, >= 1.
        cost: What a clip costs, in any unit.
        together: So many prompts of one source stay together, even where that is more than
            ``batch_size``; with 1 every batch but the last is full.
    """
    by_settings: dict[tuple[Generation, type], dict[Source, list[PlannedCaption]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for asked in planned:
        # Pictures and clips cost too differently to wait for each other.
        by_settings[asked.generation, type(asked.source)][asked.source].append(asked)
    batches = []
    for clips in by_settings.values():
        costly_first = sorted(clips, key=cost, reverse=True)
        most = max(batch_size, together)
        units = [
            unit
            for source in costly_first
            for unit in _pieces(clips[source], most if together > 1 else 1)
        ]
        batches += _filled(units, batch_size)
    return batches


def _pieces(asked: Sequence[PlannedCaption], n: int) -> list[Sequence[PlannedCaption]]:
    return [asked[at : at + n] for at in range(0, len(asked), n)]


def _filled(units: Iterable[Sequence[PlannedCaption]], n: int) -> list[list[PlannedCaption]]:
    """Batches of at most ``n``, units unbroken; a unit of more is a batch of its own."""
    batches: list[list[PlannedCaption]] = []
    for unit in units:
        if batches and len(batches[-1]) + len(unit) <= n:
            batches[-1] += unit
        else:
            batches.append(list(unit))
    return batches


def size_bytes(path: Path) -> float:
    """A clip's cost without opening it: the size of its file, 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
