"""Every number of every generated video."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

from lmms_eval_captions.analysis.t2v_verify.clip_model import (
    CLIP_TEXT,
    CLIP_VIDEO,
    ClipModel,
    cosine,
)
from lmms_eval_captions.analysis.t2v_verify.generated import Generated
from lmms_eval_captions.analysis.t2v_verify.rating import DIMENSIONS
from lmms_eval_captions.analysis.t2v_verify.similarity import (
    Frames,
    frames_of,
    likeness,
    steadiness,
)
from lmms_eval_captions.judges.errors import DataError

PEOPLE: Final = "people"
JUDGE: Final = "judge"
MEAN: Final = "mean"
"""Of the ratings along all dimensions."""


@dataclass(slots=True)
class Measured:
    """A generated video, and what was found out about it."""

    item: Generated
    values: dict[str, float] = field(default_factory=dict)
    """Name of a measure to its value."""
    reason: str | None = None
    """Why its frames were not compared, else ``None``."""


@dataclass(frozen=True, slots=True)
class Looking:
    """How frames are looked at."""

    n_frames: int
    clip: ClipModel | None
    captions: Mapping[tuple[str, str], str]
    """Caption by captioner and video, for the CLIP model."""


def measure(
    items: Sequence[Generated],
    originals: Mapping[str, Path],
    looking: Looking,
    *,
    tell: Callable[[str], None],
) -> tuple[list[Measured], dict[str, dict[str, float]]]:
    """Compare every generated video with its original; each original is read once.

    Args:
        items: The generated videos.
        originals: Path of the original of each video that has one.
        looking: How.
        tell: Told of each video as it is looked at.

    Returns:
        The generated videos in the order of their keys, and how steady each original is.
    """
    by_video = sorted(items, key=lambda item: (item.video, item.key))
    measured: list[Measured] = []
    steady: dict[str, dict[str, float]] = {}
    for video, group in groupby(by_video, key=lambda item: item.video):
        tell(video)
        try:
            original = _original(video, originals, looking.n_frames)
        except DataError as error:
            measured += [Measured(item, reason=str(error)) for item in group]
            continue
        steady[video] = steadiness(original)
        measured += _of_video(list(group), original, looking)
    return sorted(measured, key=lambda each: each.item.key), steady


def _original(video: str, originals: Mapping[str, Path], n_frames: int) -> Frames:
    if video not in originals:
        raise DataError(f"no original is called {video!r:.80}")
    return frames_of(originals[video], n_frames)


def _of_video(items: Sequence[Generated], original: Frames, looking: Looking) -> Iterator[Measured]:
    clip = looking.clip
    seen = None if clip is None else clip.of_frames(original)
    for item in items:
        try:
            frames = frames_of(item.path, looking.n_frames)
        except DataError as error:
            yield Measured(item, reason=str(error))
            continue
        values = {**likeness(frames, original), **steadiness(frames)}
        if clip is not None and seen is not None:
            embedding = clip.of_frames(frames)
            values[CLIP_VIDEO] = cosine(embedding, seen)
            caption = looking.captions.get((item.captioner, item.video))
            if caption is not None:
                values[CLIP_TEXT] = cosine(embedding, clip.of_text(caption))
        yield Measured(item, values)


def rated(who: str, ratings: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means over raters along each dimension, and the mean of those where all are there.

    >>> rated("people", [{"VA": 3, "SC": 4}, {"VA": 4}])
    {'people VA': 3.5, 'people SC': 4.0}
    """
    means: dict[str, float] = {}
    for name in DIMENSIONS:
        given = [each[name] for each in ratings if name in each]
        if given:
            means[f"{who} {name}"] = sum(given) / len(given)
    if len(means) == len(DIMENSIONS):
        means[f"{who} {MEAN}"] = sum(means.values()) / len(means)
    return means
