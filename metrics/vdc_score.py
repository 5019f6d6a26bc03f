"""VDC score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lmms_eval_captions.metrics.mean_over_videos import mean_over_videos


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
