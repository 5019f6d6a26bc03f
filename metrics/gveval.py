"""G-VEval (section 3.4): the expectation over score tokens, and means of ratings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum

from lmms_eval_captions.metrics.vdc import mean_over_videos


def gveval_expectation(distribution: Sequence[tuple[float, float]]) -> float:
    """Expectation of a score over the numbers that the judge might have written.

    Args:
        distribution: Shape (n_numbers, 2), a number and its probability > 0 each, n_numbers >= 1;
            they are scaled to sum to 1. The plain number of an endpoint without probabilities is
            one number with probability 1.

    Returns:
        Score within the range of the numbers, higher is better.

    Raises:
        ValueError: If there is no number, or a probability is not above 0.

    Source:
        G-VEval, section 3.4, equation 1, approximated by one reason as its equation 3 says;
        ztangaj/gveval@fee3fd7:evaluation/gveval/scorer.py. Parity: scaled as there, where
        alternatives that the endpoint did not list leave the sum below 1.

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
    """Mean score of the captions along one dimension, or along several (``avg``).

    Args:
        videos: One sequence per caption with the expected score in [0, 100] of one dimension, or of
            all of them; ``None`` is unscored.

    Returns:
        Score in [0, 100], higher is better; ``nan`` when nothing was scored.

    Raises:
        ValueError: If a score is outside [0, 100].

    Source:
        G-VEval, section 4.3: "we also provide an overall score (Avg.) by averaging the ACCR
        scores"; its figures print scores and human ratings as fractions of 1.

    >>> gveval_score([[80.0, 60.0, 100.0, 80.0], [None, None, None, None], [60.0] * 4])
    70.0
    """
    videos = [list(scores) for scores in videos]
    for score in (score for scores in videos for score in scores):
        if score is not None and not 0.0 <= score <= 100.0:
            raise ValueError(f"gveval_score: expected scores between 0 and 100, got {score!r}")
    return mean_over_videos(videos)


def mean_rating(videos: Iterable[Sequence[float | None]]) -> float:
    """Mean rating of the captions along one dimension.

    Args:
        videos: One sequence per caption with its rating in [1, 5]; ``None`` is unscored.

    Returns:
        Rating in [1, 5], higher is better; ``nan`` when nothing was scored.

    Raises:
        ValueError: If a rating is outside [1, 5].

    Source:
        CapQuiz, section 4.1: a Likert scale of 1-5. The paper prints correlations of such ratings
        with people's alone, and no means.

    >>> mean_rating([[5.0], [None], [2.0]])
    3.5
    """
    videos = [list(ratings) for ratings in videos]
    for rating in (rating for ratings in videos for rating in ratings):
        if rating is not None and not 1.0 <= rating <= 5.0:
            raise ValueError(f"mean_rating: expected ratings between 1 and 5, got {rating!r}")
    return mean_over_videos(videos)
