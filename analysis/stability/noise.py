"""How far scores move by the judge's noise alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from lmms_eval_captions.analysis.stability.opinions import Opinions
from lmms_eval_captions.analysis.verdicts.parts import parts_of
from lmms_eval_captions.metrics.paired import noise_floor
from lmms_eval_captions.metrics.parts import values_of_runs

RUNS: Final = (1, 3, 5)
"""Judge runs for which the noise is told."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The judge's noise in one metric."""

    metric: str
    floors: dict[int, float]
    """Judge runs to the noise floor in the metric's unit, see :func:`noise_floor`; ``nan`` where it
    is not known."""
    scores: tuple[tuple[float, ...], ...]
    """The metric in each judge run of each captioner."""

    @property
    def largest_seen(self) -> float:
        """The largest difference between two judge runs of one captioner."""
        return max(max(of_one) - min(of_one) for of_one in self.scores)


def noises(opinions: Opinions) -> Iterator[Noise]:
    """The noise in every metric that is a ratio of sums and can be computed."""
    for name, metric in opinions.benchmark.metrics.items():
        found = [parts_of(verdicts, name) for verdicts in opinions.verdicts]
        parts = [of_one.parts for of_one in found if of_one is not None]
        if len(parts) < len(found):
            continue
        floors = {n: noise_floor(parts, scale=metric.scale, n_runs=n) for n in RUNS}
        of_runs = [values_of_runs(of_one, scale=metric.scale) for of_one in parts]
        if not any(np.isnan(values).any() for values in of_runs):
            yield Noise(name, floors, tuple(tuple(map(float, v)) for v in of_runs))
