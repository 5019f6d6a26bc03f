"""G-VEval (section 3.4): the expectation over score tokens, and means of ratings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum

from lmms_eval_captions.metrics.vdc import mean_over_videos


def gveval_expectation(distribution: Sequence[tuple[float, float]]) -> float:
    """Return the expectation of a score over the numbers that the judge might have written.

    ``distribution`` has shape (n_numbers, 2): each number and its probability > 0, which are scaled
    to sum to 1. An endpoint without probabilities gives one number with probability 1.

    Source:
        G-VEval, section 3.4, equations 1 and 3. Parity: scaled as in
        ztangaj/gveval@fee3fd7:evaluation/gveval/scorer.py, as endpoints list not all alternatives.

    >>> gveval_expectation([(80, 0.25), (90, 0.75)])
    87.5
    """
    if not distribution or not all(share > 0.0 for _, share in distribution):
        raise ValueError(f"gveval_expectation: expected probabilities > 0, got {distribution!r}")
    total = fsum(share for _, share in distribution)
    mean = fsum(number * share for number, share in distribution) / total
    numbers = [number for number, _ in distribution]
    # Rounding must not lead out of the range.
    return float(min(max(mean, min(numbers)), max(numbers)))


def gveval_score(videos: Iterable[Sequence[float | None]]) -> float:
    """Return the mean score of captions in [0, 100], see :func:`mean_over_videos`.

    Each caption has its score of one dimension, or of all of them (``avg``, section 4.3).

    >>> gveval_score([[80.0, 60.0, 100.0, 80.0], [None, None, None, None], [60.0] * 4])
    70.0
    """
    return mean_over_videos(videos, low=0.0, high=100.0)


def mean_rating(videos: Iterable[Sequence[float | None]]) -> float:
    """Return the mean rating of captions in [1, 5], as in CapQuiz, section 4.1.

    >>> mean_rating([[5.0], [None], [2.0]])
    3.5
    """
    return mean_over_videos(videos, low=1.0, high=5.0)
