"""Score of G-VEval over captions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lmms_eval_captions.metrics.mean_over_videos import mean_over_videos


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
