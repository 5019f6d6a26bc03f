"""Mean over a video's questions, then over videos."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum, nan


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
