"""The interval of a number that comes of sums over units which come in clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from lmms_eval_captions.metrics.interval import Interval
from lmms_eval_captions.metrics.interval_ends import FEW_VIDEOS
from lmms_eval_captions.metrics.ratings import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Where a coefficient is spread nearly as a normal number: the interval is made there."""

    name: str
    to: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]


CORRELATION: Final = Line(name="Fisher's z", to=np.arctanh, back=np.tanh)
"""Of a correlation."""


def jackknife_interval(
    sums: Floats, value_of: Callable[[Floats], Floats], *, line: Line, level: float = 0.95
) -> Interval:
    """A coefficient of at most 1 with its interval over clusters.

    Args:
        sums: Shape (n_clusters, ...), what each cluster adds; those that add nothing do not count.
        value_of: From sums, shape (k, ...), to values, shape (k,).
        line: Where the interval is made.
        level: Share of such intervals that cover, in (0, 1).

    Returns:
        Value, standard error on the coefficient's own scale and ends, from -1 to 1.

    Source:
        Delete-one-cluster jackknife: Efron and Tibshirani, An Introduction to the Bootstrap (1993),
        chapter 11, with a t quantile of n_clusters - 1 degrees.

    >>> sums = np.array([[1.0, 2.0], [1.0, 3.0], [2.0, 3.0]])
    >>> found = jackknife_interval(sums, lambda s: s[..., 0] / s[..., 1], line=CORRELATION)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.5, -0.12, 0.839)
    """
    from scipy.special import stdtrit

    sums = sums[sums.any(axis=tuple(range(1, sums.ndim)))]
    n_clusters = len(sums)
    total = sums.sum(axis=0)
    value = float(value_of(total)) if n_clusters else float("nan")
    left_out = value_of(total - sums) if n_clusters else np.empty(0)
    note = _why_none(value, left_out)
    if note:
        return Interval(
            value=value, low=None, high=None, standard_error=None, n_videos=n_clusters,
            method="none", note=note,
        )  # fmt: skip
    reach = float(stdtrit(n_clusters - 1, (1 + level) / 2)) * _error(line.to(left_out))
    low, high = line.back(line.to(np.array(value)) + np.array([-reach, reach])).tolist()
    return Interval(
        value=value,
        low=max(-1.0, min(low, high)),
        high=min(1.0, max(low, high)),
        standard_error=_error(left_out),
        n_videos=n_clusters,
        method=f"jackknife over videos of {line.name}",
        note=f"only {n_clusters} videos: a rough guess" if n_clusters < FEW_VIDEOS else "",
    )


def _why_none(value: float, left_out: Floats) -> str:
    """Why there is no interval, empty where there is one."""
    if np.isnan(value):
        return "no value: too few units, or all of them are alike"
    if len(left_out) < 2:
        return "no interval: fewer than 2 videos count"
    if value >= 1:
        return "no interval: not one disagreement"
    if np.ptp(left_out) == 0:
        return "no interval: all videos are alike"
    if not np.isfinite(left_out).all() or (np.abs(left_out) >= 1).any():
        return "no interval: without one of the videos there is no disagreement, or no value"
    return ""


def _error(values: Floats) -> float:
    n_values = len(values)
    return float(np.sqrt((n_values - 1) / n_values * ((values - values.mean()) ** 2).sum()))
