"""How much of what is not known of a metric is the judge's doing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmms_eval_captions.metrics.ratio_parts import influences_of_videos, values_of_runs

if TYPE_CHECKING:
    from lmms_eval_captions.metrics.ratio_parts import RatioParts


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRuns:
    """A metric over judge runs, and the judge's part in its standard error."""

    n_runs: int
    mean: float
    """In the metric's unit; ``nan`` where it has no value."""
    deviation: float | None
    """Of single runs around their mean, divided by their number as ``<metric>_std`` of a breakdown
    is; ``None`` with one run."""
    standard_error: float | None
    """Of the mean over runs, from what the judge says otherwise another time; ``None`` with one
    run."""
    share: float | None
    """Part of the variance over videos and runs that is the judge's, in [0, 1]; the rest is the
    videos'. ``None`` with one run."""
    note: str = ""
    """Why the judge's part is not known; else empty."""


def judge_runs(parts: RatioParts, *, scale: float) -> JudgeRuns:
    """The judge's component of a metric: how it differs from run to run on the same captions.

    An interval over videos has this component in it already, as what a video adds is the mean over
    the runs that there were. More runs make the component smaller (half of it at twice the runs),
    more videos make both smaller.

    Args:
        parts: What each video adds, see :data:`RatioParts`.
        scale: What is printed for a share of 1.

    Returns:
        The component. Its standard error takes the judge to err on each video for itself; it is
        from the variance between runs within each video, which thousands of videos tell well,
        where the few runs' own deviation tells little.

    Source:
        Variance components of videos with replicates nested in them: Searle, Casella and McCulloch,
        Variance Components (1992), section 3.6; for judges, arXiv 2411.00640, section 3 (resampling
        answers).

    >>> runs = np.array([[[[[1.0, 1.0]]], [[[0.0, 1.0]]]], [[[[1.0, 1.0]]], [[[1.0, 1.0]]]]])
    >>> found = judge_runs(runs, scale=100.0)
    >>> found.mean, found.deviation
    (75.0, 25.0)
    """
    kept = parts[:, parts.any(axis=(0, 2, 3, 4))]
    n_runs, n_videos = kept.shape[:2]
    values = values_of_runs(kept, scale=scale) if n_videos else np.array([np.nan])
    mean = float(values.mean())
    if n_runs < 2 or n_videos < 2 or np.isnan(mean):
        note = "unknown with 1 judge run" if n_runs < 2 else "unknown: fewer than 2 videos count"
        return JudgeRuns(
            n_runs=n_runs, mean=mean, deviation=None, standard_error=None, share=None, note=note
        )
    influences = influences_of_videos(kept, scale=scale)
    of_judge = float(influences.var(axis=0, ddof=1).sum()) / n_runs
    of_all = float((influences.mean(axis=0) ** 2).sum())
    return JudgeRuns(
        n_runs=n_runs,
        mean=mean,
        deviation=float(values.std()),
        standard_error=float(np.sqrt(of_judge * n_videos / (n_videos - 1))),
        share=min(1.0, of_judge / of_all) if of_all else (1.0 if of_judge else 0.0),
    )
