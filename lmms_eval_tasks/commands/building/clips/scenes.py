"""Where scenes are cut into parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil

Span = tuple[float, float]
"""Start and end in seconds from the first frame of a video, the end not included."""

_DIGITS = 3
"""Decimals of seconds: names of files count milliseconds, too."""
_ROUNDING_S = 1e-3


def spans_between(cuts_s: Sequence[float], duration_s: float) -> list[Span]:
    """The scenes of a video.

    Args:
        cuts_s: When each scene but the first begins, in seconds, rising.
        duration_s: Length of the video in seconds, above 0.

    >>> spans_between([4.0, 9.5], 12.0)
    [(0.0, 4.0), (4.0, 9.5), (9.5, 12.0)]
    """
    edges = [0.0, *(round(cut_s, _DIGITS) for cut_s in cuts_s), round(duration_s, _DIGITS)]
    return list(pairwise(edges))


def parts_of(scene: Span, *, min_s: float, max_s: float) -> list[Span]:
    """A scene as parts of a length between two bounds.

    A scene that is longer than a part may be is cut evenly. Where even parts would be too short,
    which happens where ``max_s`` is less than twice ``min_s``, there are as many as fit, each of
    ``max_s`` at most, and what is between them is left out.

    Args:
        scene: The scene.
        min_s: Shortest part in seconds, above 0.
        max_s: Longest part in seconds, at least ``min_s``.

    Returns:
        The parts in order of time; none where the scene is shorter than a part may be.

    Source:
        VidCapBench, section 3.3.1 (3 to 15 seconds). What is done with longer scenes is ours: the
        paper does not say.

    >>> parts_of((10.0, 50.0), min_s=3, max_s=15)
    [(10.0, 23.333), (23.333, 36.667), (36.667, 50.0)]
    >>> parts_of((0.0, 16.0), min_s=10, max_s=15), parts_of((0.0, 2.9), min_s=3, max_s=15)
    ([(0.0, 15.0)], [])
    """
    start_s, end_s = scene
    length_s = end_s - start_s
    # Rounded as the times are: a scene of 72 frames at 24 a second lasts 3 s.
    most = int((length_s + _ROUNDING_S) / min_s)
    if not most:
        return []
    n_parts = min(ceil((length_s - _ROUNDING_S) / max_s), most)
    step_s = length_s / n_parts
    starts_s = [round(start_s + step_s * number, _DIGITS) for number in range(n_parts)]
    ends_s = [*starts_s[1:], round(end_s, _DIGITS)]
    # Never longer than may be: where little fits, the rest is left out.
    return [
        (at_s, min(next_s, round(at_s + max_s, _DIGITS)))
        for at_s, next_s in zip(starts_s, ends_s, strict=True)
    ]
