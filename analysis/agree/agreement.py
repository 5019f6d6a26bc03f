"""How far judges, or the runs of one, say the same."""

from __future__ import annotations

import numpy as np

from lmms_eval_captions.analysis.agree.findings import Agreement, Confusion
from lmms_eval_captions.analysis.agree.units import Measure, Units
from lmms_eval_captions.metrics.agreement import Coefficient, agreement_interval, kappa_parts
from lmms_eval_captions.metrics.correlation import pearson_interval
from lmms_eval_captions.metrics.intervals import Interval


def agreement_of(units: Units, measure: Measure) -> Agreement:
    """The agreement of raters, by units that all of them scored.

    Args:
        units: Of at least two raters.
        measure: What they say.
    """
    scored = units.scored()
    codes = scored.ratings.codes
    is_pair = codes.shape[1] == 2

    def interval(coefficient: Coefficient) -> Interval:
        return agreement_interval(scored.ratings, scored.videos, coefficient=coefficient)

    return Agreement(
        measure=measure.name,
        n_units=len(scored),
        n_unscored=len(units) - len(scored),
        same=float((codes == codes[:, :1]).all(axis=1).mean()) if len(scored) else None,
        kappa=interval("kappa") if measure.is_label and is_pair else None,
        ac1=interval("ac1") if measure.is_label else None,
        alpha=interval("nominal" if measure.is_label else "interval"),
        correlation=_correlation(scored) if is_pair and not measure.is_label else None,
    )


def main_agreement(units: Units, measure: Measure) -> Interval:
    """Kappa of two judges' labels, or alpha of their numbers."""
    scored = units.scored()
    coefficient: Coefficient = "kappa" if measure.is_label else "interval"
    return agreement_interval(scored.ratings, scored.videos, coefficient=coefficient)


def confusion_of(units: Units) -> Confusion:
    """The table of two judges' labels."""
    table = kappa_parts(units.scored().ratings).sum(axis=0)
    return Confusion(
        labels=tuple(map(str, units.ratings.categories)),
        counts=tuple(tuple(map(int, row)) for row in table.tolist()),
    )


def _correlation(units: Units) -> Interval:
    numbers = np.array([*units.ratings.categories, 0.0], dtype=np.float64)[units.ratings.codes]
    return pearson_interval(numbers[:, 0].tolist(), numbers[:, 1].tolist(), units.videos)
