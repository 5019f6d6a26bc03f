"""Which of three or more captioners is best, and whether it is so beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan

from lmms_eval_captions.analysis.old_compare.rows import ALPHA, difference_of
from lmms_eval_captions.analysis.verdicts.parts import parts_of
from lmms_eval_captions.analysis.verdicts.verdicts import Verdicts
from lmms_eval_captions.metrics.paired import Difference, holm
from lmms_eval_captions.metrics.parts import values_of_runs


@dataclass(frozen=True, slots=True)
class Ahead:
    """The captioner with the best headline beside another."""

    other: int
    """Place of the other captioner."""
    difference: Difference
    """The leader's less the other's."""
    p_value: float | None
    """By Holm's correction over every two of the captioners: any of them might have led."""
    is_real: bool
    """Whether the leader is better beyond chance."""


@dataclass(frozen=True, slots=True)
class Lead:
    """The captioner with the best headline."""

    first: int
    """Its place."""
    over: Sequence[Ahead]
    """Every other captioner, the next best first."""


def lead_of(several: Sequence[Verdicts]) -> Lead | None:
    """The captioner with the best headline, beside each of the others.

    Which one leads is seen in the same verdicts by which the lead is judged. So the p-values are
    corrected over all pairs of captioners, and not only over those with the leader.

    Args:
        several: Verdicts on the same captions and questions.

    Returns:
        ``None`` for fewer than three, where the one difference says it all, and where one of them
        has no number.
    """
    metric = several[0].benchmark.metrics[several[0].benchmark.headline]
    found = [parts_of(verdicts, several[0].benchmark.headline) for verdicts in several]
    parts = [of_one.parts for of_one in found if of_one is not None and of_one.parts.any()]
    if len(several) < 3 or len(parts) < len(several):
        return None
    sign = 1 if metric.higher_is_better else -1
    values = [sign * float(values_of_runs(array, scale=1.0).mean()) for array in parts]
    if any(map(isnan, values)):
        return None
    order = sorted(range(len(parts)), key=lambda place: -values[place])
    pairs = {(a, b): difference_of(parts[a], parts[b], metric) for a, b in combinations(order, 2)}
    adjusted = dict(zip(pairs, holm([one.p_value for one in pairs.values()]), strict=True))
    first = order[0]
    return Lead(
        first,
        [
            Ahead(other, pairs[first, other], p, is_real=p is not None and p < ALPHA)
            for other in order[1:]
            for p in (adjusted[first, other],)
        ],
    )
