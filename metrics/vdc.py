"""VDC: accuracy and score, means over videos (AuroraCap, section 3.2.1 and Table 7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum, inf, nan

from lmms_eval_captions.judges.verdict import Match


def mean_over_videos(
    videos: Iterable[Sequence[float | None]], *, low: float = -inf, high: float = inf
) -> float:
    """Return the mean over videos of the mean over each one's scored questions.

    ``None`` is unscored. Videos with nothing scored do not count; ``nan`` if none is left.

    Raises:
        ValueError: If a value is outside the bounds.

    Source:
        AuroraCap (arXiv 2410.03051), section 3.2.1; over a video first, as the released script
        does. Deviation: that script drops videos that score 0.

    >>> mean_over_videos([[1.0, 0.0, None], [1.0]])
    0.75
    """
    means = []
    for values in videos:
        scored = [value for value in values if value is not None]
        if any(not low <= value <= high for value in scored):
            raise ValueError(f"expected values between {low:g} and {high:g}, got {scored}")
        if scored:
            means.append(fsum(scored) / len(scored))
    return fsum(means) / len(means) if means else nan


def vdc_acc(videos: Iterable[Sequence[Match | None]]) -> float:
    """Return the percentage of questions answered right, see :func:`mean_over_videos`.

    >>> vdc_acc([["yes", "no", None], ["yes"]])
    75.0
    """
    return 100.0 * mean_over_videos(
        [None if verdict is None else float(verdict == "yes") for verdict in verdicts]
        for verdicts in videos
    )


def vdc_score(videos: Iterable[Sequence[float | None]]) -> float:
    """Return the mean quality of the answers in [0, 5], see :func:`mean_over_videos`.

    >>> vdc_score([[5.0, 0.0, None], [4.0]])
    3.25
    """
    return mean_over_videos(videos, low=0.0, high=5.0)
