"""How sure a metric is: its 95 % interval over videos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmms_eval_captions.metrics.ratio_parts import influences_of_videos, values_of_runs

if TYPE_CHECKING:
    from lmms_eval_captions.metrics.ratio_parts import RatioParts


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A metric with what it may be on other videos like these."""

    value: float
    """Mean over judge runs, in the metric's unit; ``nan`` where it has no value."""
    low: float | None
    high: float | None
    """Ends of the interval in the metric's unit; ``None`` where none can be given."""
    standard_error: float | None
    """Over videos, in the metric's unit; ``None`` where there is no interval."""
    n_videos: int
    """Videos that have a part in the metric."""
    method: str
    """How the ends were found, in a few words."""
    note: str = ""
    """Why there is no interval, or what a reader must know of it; else empty."""


def interval(
    parts: RatioParts, *, scale: float, bounds: tuple[float, float], level: float = 0.95
) -> Interval:
    """The interval of a metric over videos.

    Args:
        parts: What each video adds, see :data:`RatioParts`; a video that has no part is all 0.
        scale: What is printed for a share of 1.
        bounds: Lowest and highest value that the metric can have.
        level: Share of such intervals that cover, in (0, 1).
    """
    from scipy.special import stdtrit

    has_part = parts.any(axis=(0, 2, 3, 4))
    kept = parts[:, has_part]
    n_videos = int(has_part.sum())
    value = float(values_of_runs(kept, scale=scale).mean()) if n_videos else float("nan")
    if n_videos < 2 or np.isnan(value):
        note = "no interval: fewer than 2 videos count"
        return Interval(
            value=value, low=None, high=None, standard_error=None, n_videos=n_videos,
            method="none", note=note,
        )  # fmt: skip
    influences = influences_of_videos(kept, scale=scale).mean(axis=0)
    error = float(np.sqrt((influences**2).sum() * n_videos / (n_videos - 1)))
    reach = float(stdtrit(n_videos - 1, (1 + level) / 2)) * error
    return Interval(
        value=value, low=max(bounds[0], value - reach), high=min(bounds[1], value + reach),
        standard_error=error, n_videos=n_videos, method="linearised t over videos",
    )  # fmt: skip
