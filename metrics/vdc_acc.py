"""VDC accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lmms_eval_captions.judges.verdict import Match
from lmms_eval_captions.metrics.mean_over_videos import mean_over_videos


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
