"""VDC: accuracy and score, means over videos."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum, nan

from lmms_eval_captions.judges.verdict import Match


def mean_over_videos(videos: Iterable[Sequence[float | None]]) -> float:
    """Mean over videos of the mean over each video's scored questions.

    Args:
        videos: One sequence per video, one value per question; ``None`` is an unscored question.

    Returns:
        Mean in the unit of the values. Unscored questions leave the denominator, and so do videos
        with none scored; ``nan`` when nothing was scored.

    Source:
        AuroraCap (arXiv 2410.03051), section 3.2.1: "averaging the correctness score and quality
        score respectively"; over a video first, as the released script does. Deviation: that script
        drops videos that score 0.

    >>> mean_over_videos([[1.0, 0.0, None], [1.0]])
    0.75
    """
    means = []
    for values in videos:
        scored = [value for value in values if value is not None]
        if scored:
            means.append(fsum(scored) / len(scored))
    return fsum(means) / len(means) if means else nan


def vdc_acc(videos: Iterable[Sequence[Match | None]]) -> float:
    """Share of questions that a caption answers right, mean over a video, then over videos.

    Args:
        videos: One sequence per video, one verdict per question; ``None`` is unscored.

    Returns:
        Percentage in [0, 100], higher is better; ``nan`` when nothing was scored.

    Source:
        AuroraCap (arXiv 2410.03051), section 3.2.1 and Table 7. See :func:`mean_over_videos`.

    >>> vdc_acc([["yes", "no", None], ["yes"]])
    75.0
    """
    return 100.0 * mean_over_videos(
        [None if verdict is None else float(verdict == "yes") for verdict in verdicts]
        for verdicts in videos
    )


def vdc_score(videos: Iterable[Sequence[float | None]]) -> float:
    """Quality of the answers that a caption gives, mean over a video, then over videos.

    Args:
        videos: One sequence per video, one score in [0, 5] per question; ``None`` is unscored.

    Returns:
        Score in [0, 5], higher is better; ``nan`` when nothing was scored.

    Raises:
        ValueError: If a score is outside [0, 5].

    Source:
        AuroraCap (arXiv 2410.03051), section 3.2.1 and Table 7. See :func:`mean_over_videos`.

    >>> vdc_score([[5.0, 0.0, None], [4.0]])
    3.25
    """
    videos = [list(scores) for scores in videos]
    for score in (score for scores in videos for score in scores):
        if score is not None and not 0.0 <= score <= 5.0:
            raise ValueError(f"vdc_score: expected scores between 0 and 5, got {score!r}")
    return mean_over_videos(videos)
