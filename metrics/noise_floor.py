"""Below which difference of two scores the judge's own noise may be all there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.metrics.judge_runs import judge_runs
from lmms_eval_captions.metrics.ratio_parts import influences_of_videos

if TYPE_CHECKING:
    from lmms_eval_captions.metrics.ratio_parts import RatioParts

_ROUNDING: Final = 1e-12
"""Standard error, as a share of the scale, of runs that differ by rounding alone."""


def noise_floor(
    captioners: Sequence[RatioParts], *, scale: float, n_runs: int, level: float = 0.95
) -> float:
    """The difference of two captioners' scores that the judge's noise alone stays below.

    Two captioners whose captions are equally good to the judge, on the same videos and judged
    ``n_runs`` times each, differ by less in ``level`` of all cases. It says nothing of other
    videos: a larger difference may still be these videos' doing, see :func:`paired_interval`.

    Args:
        captioners: What each video adds for each captioner, see :data:`RatioParts`, with at least
            2 judge runs; their noise is averaged.
        scale: What is printed for a share of 1.
        n_runs: Judge runs that the two scores are means of, >= 1.
        level: Share of equal captioners that differ by less, in (0, 1).

    Returns:
        The difference in the metric's unit, >= 0; 0 where no verdict moved from run to run.
        ``nan`` where the judge's noise is not known, see :class:`JudgeRuns`.

    Source:
        The variance of a score over repeated answers to the same questions, 1 / n_runs of one
        run's (arXiv 2411.00640, section 3.1), here from the variance between runs within each
        video, whose sum over videos has the degrees of freedom of Satterthwaite, Biometrics
        Bulletin 2 (1946); the difference of two such means has twice the variance. As if every
        video were judged for itself: a judge that changes for all videos at once moves scores
        further, which the runs' own scores show.

    One video of two gets another verdict in the second of two runs, which moves the score by 50:

    >>> runs = np.array([[[[[1.0, 1.0]]], [[[0.0, 1.0]]]], [[[[1.0, 1.0]]], [[[1.0, 1.0]]]]])
    >>> errors = [noise_floor([runs], scale=100.0, n_runs=n) for n in (1, 4)]
    >>> round(errors[0] / errors[1], 6)
    2.0
    """
    from scipy.special import stdtrit

    variances, freedoms = [], []
    for parts in captioners:
        found = judge_runs(parts, scale=scale)
        if found.standard_error is None:
            return float("nan")
        error = found.standard_error if found.standard_error > _ROUNDING * scale else 0.0
        variances.append(error**2 * found.n_runs)
        freedoms.append(_freedom(parts, scale))
    variance = float(np.mean(variances))
    if variance == 0:
        return 0.0
    # Of a sum of independent variances; a captioner without noise adds none.
    freedom = sum(variances) ** 2 / sum(
        of_one**2 / df for of_one, df in zip(variances, freedoms, strict=True) if of_one
    )
    return float(stdtrit(freedom, (1 + level) / 2)) * float(np.sqrt(2 * variance / n_runs))


def _freedom(parts: RatioParts, scale: float) -> float:
    """Satterthwaite's degrees of freedom of the variance between runs; 0 where there is none."""
    kept = parts[:, parts.any(axis=(0, 2, 3, 4))]
    of_videos = influences_of_videos(kept, scale=scale).var(axis=0, ddof=1)
    squares = float((of_videos**2).sum())
    return float((len(kept) - 1) * of_videos.sum() ** 2 / squares) if squares else 0.0
