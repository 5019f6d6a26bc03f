"""Coverage of intervals and paired differences, metric by metric; see ``coverage.py``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.metrics.intervals import Interval, intervals
from lmms_eval_captions.metrics.paired import Difference, paired_interval
from simulated_benchmarks import (
    Case,
    Design,
    Drawn,
    draw,
    parts_of,
    true_score,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Hits = NDArray[np.bool_]

LOWEST: Final = 93.5
HIGHEST: Final = 96.5
_AT_ONCE: Final = 200_000
"""Videos that are drawn at once."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Result of one metric with one design; shares in percent."""

    case: str
    metric: str
    design: Design
    n: int
    """Simulations."""
    n_without: int
    """Simulations without an interval, as all videos were alike; left out of the shares."""
    covers: float
    paired: float

    def outside(self) -> list[str]:
        """Which of its shares are not near enough to 95%."""
        shares = {"interval": self.covers, "difference": self.paired}
        return [name for name, share in shares.items() if not LOWEST <= share <= HIGHEST]


def measure(case: Case, design: Design, *, simulations: int, seed: int) -> list[Cell]:
    """Coverage of every metric of a case."""
    rates = (round(1000 * rate) for rate in (design.correlation, design.flips))
    salt = (*case.name.encode(), design.n_videos, design.n_runs, *rates)
    rng = np.random.default_rng([seed, *salt])
    step = max(1, _AT_ONCE // (design.n_videos * case.n_tasks * design.n_runs))
    hits: dict[str, list[list[Hits]]] = {metric: [] for metric in case.metrics}
    for start in range(0, simulations, step):
        drawn = draw(case, design, min(step, simulations - start), rng)
        for metric in case.metrics:
            hits[metric].append(_hits(case, metric, drawn, design))
    return [
        _cell(case.name, metric, design, [np.concatenate(some) for some in zip(*of, strict=True)])
        for metric, of in hits.items()
    ]


def _cell(case: str, metric: str, design: Design, hits: Sequence[Hits]) -> Cell:
    has_ends, inside, differs, paired = hits
    return Cell(
        case=case,
        metric=metric,
        design=design,
        n=len(inside),
        n_without=int((~has_ends).sum()),
        covers=100 * float(inside[has_ends].mean()),
        paired=100 * float(paired[differs].mean()),
    )


def _hits(case: Case, metric: str, drawn: Drawn, design: Design) -> list[Hits]:
    """Return per simulation: has an interval, and covers; the same for differences."""
    known = all_benchmarks()[case.benchmark].metrics[metric]
    truths = [true_score(case, metric, of, design.flips) for of in (case.shares, case.others)]
    parts = [parts_of(case, metric, *of) for of in zip(drawn.counts, drawn.tokens, strict=True)]
    singles = intervals(list(parts[0]), scale=known.scale, bounds=known.bounds)
    lows, highs = _ends(singles)
    has_ends = ~np.isnan(lows)
    inside = (lows <= truths[0]) & (truths[0] <= highs)
    found = [paired_interval(a, b, scale=known.scale) for a, b in zip(*parts, strict=True)]
    lows, highs = _ends(found)
    differs = ~np.isnan(lows)
    difference = truths[0] - truths[1]
    return [has_ends, inside, differs, (lows <= difference) & (difference <= highs)]


def _ends(found: Sequence[Interval | Difference]) -> tuple[Floats, Floats]:
    """Ends of intervals, ``nan`` where there are none."""
    ends = np.array([(one.low, one.high) for one in found], np.float64)
    return ends[:, 0], ends[:, 1]


def campaign(
    jobs: Sequence[tuple[Case, Design]], *, simulations: int, seed: int, processes: int
) -> Iterator[Cell]:
    """All cells of cases and designs, in their order."""
    run = partial(_measure, simulations=simulations, seed=seed)
    with ProcessPoolExecutor(processes) as pool:
        for cells in pool.map(run, jobs):
            yield from cells


def _measure(job: tuple[Case, Design], *, simulations: int, seed: int) -> list[Cell]:
    return measure(*job, simulations=simulations, seed=seed)


def table(cells: Sequence[Cell]) -> str:
    """A line for each metric: mean, lowest and highest share over its cells."""
    lines = [f"{'':35} {'interval':^20} {'difference':^20}"]
    head = f"{'mean':>6} {'lowest':>6} {'highest':>6}"
    lines.append(f"{'% that cover':35} {head} {head} {'cells':>6} {'without':>8}")
    for name in dict.fromkeys((cell.case, cell.metric) for cell in cells):
        mine = [cell for cell in cells if (cell.case, cell.metric) == name]
        columns = []
        for values in ([cell.covers for cell in mine], [cell.paired for cell in mine]):
            numbers = np.mean(values), np.min(values), np.max(values)
            columns.append(" ".join(f"{number:6.1f}" for number in numbers))
        without = f"{100 * sum(c.n_without for c in mine) / sum(c.n for c in mine):7.2f}%"
        lines.append(f"{': '.join(name):35} {' '.join(columns)} {len(mine):6} {without}")
    return "\n".join(lines)


def line(cell: Cell) -> str:
    """A cell in words."""
    design = cell.design
    return (
        f"{cell.case}: {cell.metric}, {design.n_videos} videos, correlation "
        f"{design.correlation:g}, flips {design.flips:.0%}: interval {cell.covers:.1f}%, "
        f"difference {cell.paired:.1f}% of {cell.n - cell.n_without:,}"
    )
