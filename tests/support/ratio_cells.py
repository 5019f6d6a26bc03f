"""Contributions of videos to a percentage, made of counts, and its interval."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from lmms_eval_captions.metrics.intervals import Interval, interval

Floats = npt.NDArray[np.float64]


def ratio(tops: Iterable[float], bottoms: Iterable[float]) -> Floats:
    """Parts of a metric of one run, one term and one factor."""
    pairs: Floats = np.array([list(tops), list(bottoms)], np.float64).T.reshape(-1, 2)
    parts: Floats = pairs[None, :, None, None]
    return parts


def of(parts: Floats) -> Interval:
    """The interval of a percentage."""
    return interval(parts, scale=100.0, bounds=(0.0, 100.0))


def ends(found: Interval) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high
