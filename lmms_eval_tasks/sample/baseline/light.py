"""Changes of light in a clip: none, a slow one, a flash, or flicker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Light = Literal["constant", "darker", "brighter", "flashes", "flickers"]

_MIN_LIGHT: Final = 1.25
"""Smallest ratio of brightness, between the ends of a shot, that counts as a change."""
_MIN_JUMP: Final = 1.4
"""Smallest ratio of brightness, to the frames around it, of a frame that is lit otherwise."""
_MOST_UNLIKE: Final = 0.25
"""Largest remainder between a picture and itself, dimmed or lit, in [0, 1]."""
_BLANK: Final = 8.0
"""Spread of the levels of a frame that shows nothing but light or dark, of 255."""
_MIN_LIKENESS: Final = 0.5
"""Correlation with the frame before of one that shows the same in another light."""
_LONGEST: Final = 2
"""Frames that a flash lasts at most."""
_MIN_FLICKERS: Final = 3


def flashes(frames: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Find frames that show the picture around them in another light, or nothing at all.

    Args:
        frames: Shape (n, height, width, 3), RGB, n >= 1.

    Returns:
        Shape (n,); at least one frame is none.
    """
    is_flash = np.zeros(len(frames), dtype=bool)
    before = 0
    for place in range(1, len(frames)):
        if is_flash[place]:
            continue
        for end in range(place + 1, min(place + _LONGEST, len(frames) - 1) + 1):
            run = frames[place:end]
            if _is_alike(frames[before], frames[end]) and all(
                _is_lit_otherwise(frames[before], frame) for frame in run
            ):
                is_flash[place:end] = True
                break
        if not is_flash[place]:
            before = place
    # A clip may begin or end in the midst of it.
    for end in {0, len(frames) - 1}:
        known = np.flatnonzero(is_flash)
        if not is_flash[end] and any(_is_alike(frames[end], frames[place]) for place in known):
            is_flash[end] = True
    return is_flash


def unlikeness(earlier: NDArray[np.uint8], later: NDArray[np.uint8]) -> float:
    """Return the remainder of the second picture minus the first one dimmed or lit, in [0, 1]."""
    before, after = earlier.astype(np.float64), later.astype(np.float64)
    gain = float(np.sum(before * after) / max(np.sum(before * before), 1.0))
    remainder, whole = np.sum((after - gain * before) ** 2), np.sum(after * after)
    return float(np.sqrt(remainder / max(whole, 1.0)))


def read_light(gray: NDArray[np.uint8], is_flash: NDArray[np.bool_]) -> Light | None:
    """Return the change of light over one shot, ``None`` if it is not clear.

    Args:
        gray: Shape (n, height, width), gray levels.
        is_flash: Shape (n,), as of :func:`flashes`.
    """
    n_flashes = int(np.sum(is_flash & ~np.concatenate([[False], is_flash[:-1]])))
    if n_flashes:
        return "flickers" if n_flashes >= _MIN_FLICKERS else "flashes"
    if len(gray) < 2:
        return None
    levels = np.maximum(gray.mean(axis=(1, 2)), 1.0)
    third = max(1, len(levels) // 3)
    change = float(levels[-third:].mean() / levels[:third].mean())
    if not 1 / _MIN_LIGHT <= change <= _MIN_LIGHT:
        return "brighter" if change > 1 else "darker"
    # Up and down again is no rest.
    return "constant" if levels.max() / levels.min() < _MIN_JUMP else None


def _is_alike(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> bool:
    """Return if two frames show the same in the same light."""
    return (
        not _has_jumped(one, other)
        and unlikeness(one, other) <= _MOST_UNLIKE
        and unlikeness(other, one) <= _MOST_UNLIKE
    )


def _is_lit_otherwise(before: NDArray[np.uint8], frame: NDArray[np.uint8]) -> bool:
    if not _has_jumped(before, frame):
        return False
    if float(frame.std(axis=(0, 1)).max()) < _BLANK:
        return True
    if float(before.std(axis=(0, 1)).max()) < _BLANK:
        return False
    return float(np.corrcoef(before.ravel(), frame.ravel())[0, 1]) > _MIN_LIKENESS


def _has_jumped(before: NDArray[np.uint8], frame: NDArray[np.uint8]) -> bool:
    ratio = max(float(frame.mean()), 1.0) / max(float(before.mean()), 1.0)
    return not 1 / _MIN_JUMP <= ratio <= _MIN_JUMP
