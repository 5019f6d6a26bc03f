"""How the light of a shot changes, and which frames a flash has taken: no cuts, and no pictures."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Light = Literal["constant", "darker", "brighter", "flashes", "flickers"]

_MIN_LIGHT = 1.25
"""Smallest ratio of brightness that counts as a change."""
_MIN_JUMP = 1.4
"""Smallest ratio from one frame to the next that counts as a flash."""
_MIN_FLICKER = 3
"""Changes of direction, between jumps of brightness, that make a flicker: two flashes."""
_BLANK_SPREAD = 8.0
"""Largest standard deviation of gray levels in a frame that shows nothing but light or dark."""
_LIKE = 0.25
"""Largest share of a picture that may differ from another one of the same scene."""


def read_light(gray: NDArray[np.uint8]) -> Light | None:
    """Change of brightness in a shot; ``None`` where it comes and goes slowly, or one frame is all.

    Args:
        gray: Shape (n, height, width), gray levels, n >= 1.
    """
    if len(gray) < 2:
        return None
    levels = _levels(gray)
    n_turns = len(_pulses(levels))
    if n_turns:
        return "flickers" if n_turns >= _MIN_FLICKER else "flashes"
    third = max(1, len(levels) // 3)
    before, after = float(levels[:third].mean()), float(levels[-third:].mean())
    if after / before > _MIN_LIGHT:
        return "brighter"
    if before / after > _MIN_LIGHT:
        return "darker"
    return "constant" if levels.max() / levels.min() < _MIN_LIGHT**2 else None


def lit_frames(gray: NDArray[np.uint8]) -> list[int]:
    """Positions of the frames in which a scene shows, those of flashes and darkness left out."""
    levels = _levels(gray)
    if not _pulses(levels):
        return list(range(len(gray)))
    shows = [index for index in range(len(gray)) if not _is_blank(gray[index])]
    if not shows:
        return list(range(len(gray)))
    usual = float(np.median(levels[shows]))
    near = [i for i in shows if usual / _MIN_JUMP < levels[i] < usual * _MIN_JUMP]
    return near or shows


def without_flashes(cuts: Sequence[int], gray: NDArray[np.uint8]) -> list[int]:
    """Cuts but those into and out of a flash, after which the picture is what it was before.

    Args:
        cuts: Positions of frames that may start a new shot, rising.
        gray: Shape (n, height, width), gray levels.
    """
    shows = [index for index in range(len(gray)) if not _is_blank(gray[index])]
    left = [cut for cut in cuts if not _is_of_blank(gray, shows, cut)]
    at = 0
    while at + 1 < len(left):
        start, end = left[at], left[at + 1]
        if _is_flash(gray, start, end):
            del left[at : at + 2]
            at = max(0, at - 1)
        else:
            at += 1
    return left


def _is_of_blank(gray: NDArray[np.uint8], shows: Sequence[int], cut: int) -> bool:
    """Whether a cut leads into or out of black or white, around which the picture is the same."""
    if cut in shows and cut - 1 in shows:
        return False
    before = max((index for index in shows if index < cut), default=None)
    after = min((index for index in shows if index >= cut), default=None)
    return before is not None and after is not None and _unlike(gray[before], gray[after]) < _LIKE


def _is_flash(gray: NDArray[np.uint8], start: int, end: int) -> bool:
    before, after = gray[start - 1], gray[end]
    is_back = _unlike(before, after) < _LIKE
    return is_back and all(_is_lit_otherwise(before, frame) for frame in gray[start:end])


def _is_lit_otherwise(picture: NDArray[np.uint8], frame: NDArray[np.uint8]) -> bool:
    """Whether a frame is blank, or the same picture in another light."""
    if _is_blank(frame):
        ratio = max(1.0, float(frame.mean())) / max(1.0, float(picture.mean()))
        return not 1 / _MIN_JUMP < ratio < _MIN_JUMP
    return bool(np.corrcoef(picture.ravel(), frame.ravel())[0, 1] > 1 - _LIKE)


def _is_blank(frame: NDArray[np.uint8]) -> bool:
    """Whether a frame is black or white from edge to edge."""
    level = float(frame.mean())
    return float(frame.std()) < _BLANK_SPREAD and not 32 < level < 224


def _unlike(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> float:
    difference = before.astype(np.float64) - after.astype(np.float64)
    whole = max(1.0, float(np.sum(after.astype(np.float64) ** 2)))
    return float(np.sqrt(np.sum(difference**2) / whole))


def _levels(gray: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Mean gray level of each frame, at least 1."""
    levels: NDArray[np.float64] = np.maximum(1.0, gray.mean(axis=(1, 2), dtype=np.float64))
    return levels


def _pulses(levels: NDArray[np.float64]) -> list[int]:
    """Where jumps of brightness turn round: up and down again is one turn."""
    jumps = [
        (at, later > earlier)
        for at, (earlier, later) in enumerate(itertools.pairwise(levels), start=1)
        if max(later / earlier, earlier / later) > _MIN_JUMP and abs(later - earlier) > 16
    ]
    return [at for (_, is_up), (at, is_next_up) in itertools.pairwise(jumps) if is_up != is_next_up]
