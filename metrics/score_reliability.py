"""How much of the clips' scores is the clips': reliability from two halves of their questions."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.metrics.interval import Interval
from lmms_eval_captions.metrics.pearson_interval import pearson_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FEWEST_CLIPS: Final = 10
"""Clips with both halves below which nothing is said."""


def score_reliability(first: Floats, second: Floats, *, first_share: float = 0.5) -> Interval:
    """The share of the variance of clips' scores that other questions would find again.

    Each clip's questions (or judge runs) are split in two, without a look at what was said of them,
    and each half gives the clip a score. How the halves correlate over clips tells the reliability
    of a half, from which that of the whole follows. It is the squared correlation of the score with
    the one that endlessly many such questions would give. Where a clip's questions are one of each
    kind, and clips differ in which kind they are good at, the halves differ by more than the wholes
    would: then it is too low.

    Args:
        first: Shape (n_clips,), each clip's score by its first half, in any unit; ``nan`` where the
            half has none. Clips that lack a half do not count.
        second: The same by the second half.
        first_share: Share of a clip's questions that are in its first half, in (0, 1), such as 1/3
            where one of three judge runs is.

    Returns:
        Reliability in [0, 1] with its 95 % interval over clips; halves that correlate below 0 give
        0. ``nan`` with fewer than 10 clips, or where a half is the same for all of them; without
        ends where the halves are the same clip by clip.

    Raises:
        ValueError: If the halves are not of the same clips, or ``first_share`` is no such share.

    Source:
        Spearman, Correlation calculated from faulty data (1910), and Brown, Some experimental
        results in the correlation of mental abilities (1910), British Journal of Psychology 3: 2 r
        / (1 + r) with halves of one size. Of other sizes: Horst, Estimating total test reliability
        from parts of unequal length, Educational and Psychological Measurement 11 (1951). The ends
        are those of :func:`pearson_interval`, stepped up: from 30 clips on they cover 91 to 98 %
        (``benchmarks/keep_error.py``) where Fisher's own cover 87 to 95 %, as scores of few
        questions are far from normal.

    >>> first = np.array([0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1.0])
    >>> second = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1.0])
    >>> found = score_reliability(first, second)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.769, 0.0, 0.982)
    """
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(
            "score_reliability: expected two halves of shape (n_clips,), got "
            f"{first.shape} and {second.shape}"
        )
    if not 0 < first_share < 1:
        raise ValueError(f"score_reliability: expected 0 < first_share < 1, got {first_share!r}")
    has_both = ~(np.isnan(first) | np.isnan(second))
    n_clips = int(has_both.sum())
    if n_clips < FEWEST_CLIPS:
        note = f"no value: fewer than {FEWEST_CLIPS} clips have a score by both halves"
        return Interval(
            value=float("nan"), low=None, high=None, standard_error=None, n_videos=n_clips,
            method="none", note=note,
        )  # fmt: skip
    of_halves = pearson_interval(first[has_both], second[has_both], np.arange(n_clips))
    return _stepped_up(of_halves, first_share)


def _stepped_up(halves: Interval, first_share: float) -> Interval:
    """From the correlation of the halves to the reliability of the whole."""
    value = _of_whole(halves.value, first_share)
    error = halves.standard_error
    if halves.low is None or halves.high is None or error is None:
        return replace(halves, value=value)
    around = [_of_whole(halves.value + sign * error, first_share) for sign in (-1, 1)]
    return replace(
        halves,
        value=value,
        low=_of_whole(halves.low, first_share),
        high=_of_whole(halves.high, first_share),
        standard_error=(around[1] - around[0]) / 2,
    )


def _of_whole(correlation: float, first_share: float) -> float:
    """The reliability of a whole whose parts correlate so, in [0, 1]; ``nan`` stays."""
    if not 0 < correlation < 1:
        return correlation if np.isnan(correlation) else float(correlation >= 1)
    both = 4 * first_share * (1 - first_share)
    # Horst's, times what keeps it exact near a correlation of 1.
    rest = (1 - correlation) * (1 + correlation)
    root = sqrt(correlation**2 + both * rest)
    return min(1.0, 2 * correlation / (root + correlation))
