"""How sure a metric is: its 95 % interval over videos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.metrics.interval_ends import (
    FEW_VIDEOS,
    Ends,
    in_own_order,
    interval_ends,
)
from lmms_eval_captions.metrics.judge_runs import judge_runs
from lmms_eval_captions.metrics.ratio_parts import (
    merged_terms,
    n_videos_of,
    parts_within,
    values_of_runs,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmms_eval_captions.metrics.ratio_parts import RatioParts

    Floats = NDArray[np.float64]

_BOOTSTRAP: Final = "bootstrap-t over videos"
_LOG_ODDS: Final = "t of the log-odds over videos"
_AT_ONCE: Final = 16
"""Cells whose draws are worked on together; those of the full VDC's group take 4 MB each."""
_SAME: Final = 1e-9
"""Standard error, as a share of the metric's range, below which all videos are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A metric with what it may be on other videos like these."""

    value: float
    """Mean over judge runs, in the metric's unit; ``nan`` where it has no value."""
    low: float | None
    high: float | None
    """Ends of the interval in the metric's unit; ``None`` where none can be given."""
    standard_error: float | None
    """Over videos, the judge's part in it, in the metric's unit; ``None`` where there is no
    interval."""
    n_videos: int
    """Videos that the metric rests on; where it has several ratios, that of the one with fewest."""
    method: str
    """How the ends were found, in a few words."""
    note: str = ""
    """Why there is no interval, or what a reader must know of it; else empty."""
    judge_share: float | None = None
    """Part of the variance that is the judge's, in [0, 1], see :class:`JudgeRuns`; ``None`` with
    one judge run, which cannot tell."""


def interval(
    parts: RatioParts, *, scale: float, bounds: tuple[float, float], level: float = 0.95
) -> Interval:
    """The interval of a metric over videos: the expected score on other videos and judge runs.

    What it covers is the ratio of expectations over the videos that these were drawn from *and*
    over what the judge may say of each. A judge that errs moves that number, and the interval with
    it: how far the judge is from people is another question (see ``labels`` and ``agree``). The
    questions and judge runs of a video are one cluster, however alike.

    From 10 videos on, the ends are those of a studentised bootstrap over videos on the arcsine
    scale, see :func:`bootstrap_t`. It covers where the plain t interval does not: shares near 0 or
    1, few videos, questions of a video that go together (``benchmarks/coverage.py`` measures it).
    With fewer, the t interval of the log-odds, whose note says so; so, too, where so few videos
    differ from the others (1 of 30 is not 0 %) that draws without them tell no end, then with one
    video added that is all right and one that is all wrong, as Agresti and Coull do.

    Args:
        parts: What each video adds, see :data:`RatioParts`; a video that has no part is all 0.
        scale: What is printed for a share of 1.
        bounds: Lowest and highest value that the metric can have; the interval stays within.
        level: Share of such intervals that cover, in (0, 1).

    Returns:
        The interval; without ends where fewer than 2 videos count, or where all are the same and
        it would have no width.

    Source:
        Efron and Tibshirani, An Introduction to the Bootstrap (1993), sections 12.5 and 12.6; of
        clusters, Field and Welsh, Bootstrapping clustered data (2007). Log-odds of clusters: Korn
        and Graubard, Analysis of Health Surveys (1999). Two more of each: Agresti and Coull,
        Approximate Is Better than "Exact" (1998). Evaluations whose questions come in clusters:
        arXiv 2411.00640, section 2.2.

    Twelve videos of four questions each, 24 of 48 right. By question, the interval would be 50 %
    plus or minus 14.1; but a video's questions are right or wrong together:

    >>> right = [4, 4, 0, 1, 3, 2, 4, 0, 0, 1, 4, 1]
    >>> parts = np.array([[[[[n, 4.0]]] for n in right]])
    >>> found = interval(parts, scale=100.0, bounds=(0.0, 100.0))
    >>> found.value, round(found.low, 1), round(found.high, 1), round(found.standard_error, 1)
    (50.0, 25.9, 75.9, 12.3)
    """
    return intervals([parts], scale=scale, bounds=bounds, level=level)[0]


def intervals(
    cells: Sequence[RatioParts], *, scale: float, bounds: tuple[float, float], level: float = 0.95
) -> list[Interval]:
    """The intervals of one metric in many groups of questions, in their order.

    As :func:`interval` of each, but cells with the same number of videos are worked on together
    and share their draws.

    Args:
        cells: What each video adds, cell by cell.
        scale: As for :func:`interval`.
        bounds: As for :func:`interval`.
        level: As for :func:`interval`.

    >>> cells = [np.array([[[[[1.0, 2.0]]]]]), np.array([[[[[1.0, 2.0]]], [[[2.0, 2.0]]]]])]
    >>> [one.note for one in intervals(cells, scale=100.0, bounds=(0.0, 100.0))]
    ['no interval: fewer than 2 videos count', 'only 2 videos: a rough guess']
    """
    if not 0 <= bounds[0] < bounds[1] < float("inf"):
        raise ValueError(f"interval: expected finite bounds of at least 0, got {bounds!r}")
    if bounds[0]:
        within = [parts_within(parts, scale=scale, bounds=bounds) for parts in cells]
        shares = intervals(within, scale=1.0, bounds=(0.0, 1.0), level=level)
        return [_between(found, *bounds) for found in shares]
    kept = [parts[:, parts.any(axis=(0, 2, 3, 4))] for parts in cells]
    found: dict[int, Interval] = {}
    alike: dict[tuple[int, float, tuple[int, ...]], dict[int, Floats]] = {}
    for place, parts in enumerate(kept):
        n_videos = n_videos_of(parts)
        value = float(values_of_runs(parts, scale=scale).mean()) if n_videos else float("nan")
        if n_videos < 2:
            note = "no interval: fewer than 2 videos count"
            found[place] = _without_ends(value, None, n_videos, note)
        elif np.isnan(value):
            note = "no interval: the metric has no value in some judge run"
            found[place] = _without_ends(value, None, n_videos, note)
        else:
            merged, merged_scale = merged_terms(parts, scale=scale / bounds[1])
            cells_alike = alike.setdefault((n_videos, merged_scale, merged.shape), {})
            # With few videos nothing is drawn.
            cells_alike[place] = in_own_order(merged) if n_videos >= FEW_VIDEOS else merged
    # Those of as many videos one after the other: the last draws are kept.
    for n_videos, merged_scale, shape in sorted(alike, key=lambda key: key[2]):
        cells_alike = alike[n_videos, merged_scale, shape]
        for places in _some_at_once(list(cells_alike)):
            samples = np.stack([cells_alike[place] for place in places])
            ends = interval_ends(samples, scale=merged_scale, n_videos=n_videos, level=level)
            for row, place in enumerate(places):
                found[place] = _with_ends(kept[place], ends, row, n_videos, scale, bounds[1])
    return [found[place] for place in range(len(kept))]


def _between(found: Interval, lowest: float, highest: float) -> Interval:
    """The interval of a metric, from that of its share of the way between its bounds."""
    span, error = highest - lowest, found.standard_error
    return replace(
        found,
        value=lowest + span * found.value,
        low=None if found.low is None else lowest + span * found.low,
        high=None if found.high is None else lowest + span * found.high,
        standard_error=None if error is None else span * error,
    )


def _some_at_once(places: list[int]) -> Iterator[list[int]]:
    for first in range(0, len(places), _AT_ONCE):
        yield places[first : first + _AT_ONCE]


def _with_ends(
    parts: RatioParts, ends: Ends, row: int, n_videos: int, scale: float, highest: float
) -> Interval:
    value = float(values_of_runs(parts, scale=scale).mean())
    if not ends.errors[row] > _SAME:
        return _without_ends(value, 0.0, n_videos, f"no interval: all {n_videos} videos are alike")
    is_few, is_rough = n_videos < FEW_VIDEOS, bool(ends.is_rough[row])
    note = f"few of the {n_videos} videos differ: a rough guess" if is_rough else ""
    return Interval(
        value=value,
        low=min(value, highest * float(ends.lows[row])),
        high=max(value, highest * float(ends.highs[row])),
        standard_error=highest * float(ends.errors[row]),
        n_videos=n_videos,
        method=(_LOG_ODDS if is_few or is_rough else _BOOTSTRAP),
        note=f"only {n_videos} videos: a rough guess" if is_few else note,
        judge_share=judge_runs(parts, scale=scale).share if len(parts) > 1 else None,
    )


def _without_ends(value: float, error: float | None, n_videos: int, note: str) -> Interval:
    return Interval(
        value=value,
        low=None,
        high=None,
        standard_error=error,
        n_videos=n_videos,
        method="none",
        note=note,
    )
