"""How often the 95 % intervals of every metric cover the true score, on simulated benchmarks.

    python benchmarks/coverage.py --simulations 2000

draws benchmarks of 30 to 1,000 videos with unequal numbers of questions, whose verdicts on a video
go together with correlations from 0 to 0.5 and whose judge flips 0 to 15 % of them (see
``simulated_benchmarks.py``), and counts for every metric how often its interval, and that of the
paired difference of two captioners, has the truth inside; beside them the naive intervals that take
every question for itself. A cell outside 93.5 to 96.5 % is drawn again with five times as many
simulations, as one in 400 is outside by chance. ``--hard`` takes captioners that are right in 5 %
or 95 % of the questions, ``--runs 3`` several judge runs. Then come the chances to find a true
difference of 1 point on VDC. Exits with 1 where a cell stays outside.
"""

# ruff: noqa: E402 - each process keeps to one core, which must be said before numpy is imported
from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.metrics.interval_ends import interval_ends
from lmms_eval_captions.metrics.paired_interval import paired_interval
from lmms_eval_captions.metrics.ratio_parts import merged_terms
from simulated_benchmarks import (
    CASES,
    Case,
    Design,
    Drawn,
    draw,
    naive_errors,
    parts_of,
    true_score,
    with_best,
)
from vdc_power import power_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Hits = NDArray[np.bool_]

LOWEST: Final = 93.5
HIGHEST: Final = 96.5
VIDEOS: Final = (30, 100, 300, 1000)
CORRELATIONS: Final = (0.0, 0.25, 0.5)
FLIPS: Final = (0.0, 0.05, 0.15)
_NORMAL: Final = 1.959964
_AT_ONCE: Final = 200_000
"""Videos that are drawn at once."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What came of one metric with one design; shares in percent."""

    case: str
    metric: str
    design: Design
    n: int
    """Simulations."""
    n_without: int
    """Those without an interval, as all videos were alike; they are in none of the shares."""
    covers: float
    naive: float
    paired: float
    paired_naive: float

    def outside(self) -> list[str]:
        """Which of its shares are not near enough to 95 %."""
        shares = {"interval": self.covers, "difference": self.paired}
        return [name for name, share in shares.items() if not LOWEST <= share <= HIGHEST]


def measure(case: Case, design: Design, *, simulations: int, seed: int) -> list[Cell]:
    """Coverage of every metric of a case."""
    rng = np.random.default_rng([seed, *case.name.encode(), design.n_videos, design.n_runs,
                                 round(1000 * design.correlation), round(1000 * design.flips)])  # fmt: skip
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
    has_ends, inside, naive, differs, paired, paired_naive = hits
    return Cell(
        case=case,
        metric=metric,
        design=design,
        n=len(inside),
        n_without=int((~has_ends).sum()),
        covers=100 * float(inside[has_ends].mean()),
        naive=100 * float(naive[has_ends].mean()),
        paired=100 * float(paired[differs].mean()),
        paired_naive=100 * float(paired_naive[differs].mean()),
    )


def _hits(case: Case, metric: str, drawn: Drawn, design: Design) -> list[Hits]:
    """Of each simulation: has an interval, it covers, the naive covers; the same of differences."""
    known = all_benchmarks()[case.benchmark].metrics[metric]
    truths = [true_score(case, metric, of, design.flips) for of in (case.shares, case.others)]
    parts = [parts_of(case, metric, *of) for of in zip(drawn.counts, drawn.tokens, strict=True)]
    merged, scale = merged_terms(parts[0], scale=known.scale / known.highest)
    ends = interval_ends(merged, scale=scale, n_videos=design.n_videos, level=0.95)
    has_ends = ends.errors > 1e-9
    truth = truths[0] / known.highest
    naive = [naive_errors(case, metric, drawn, captioner) for captioner in (0, 1)]
    inside = (ends.lows <= truth) & (truth <= ends.highs)
    naively = np.abs(ends.shares * known.highest - truths[0]) <= _NORMAL * naive[0]
    found = [paired_interval(a, b, scale=known.scale) for a, b in zip(*parts, strict=True)]
    differs = np.array([one.low is not None for one in found])
    lows = np.array([np.nan if one.low is None else one.low for one in found])
    highs = np.array([np.nan if one.high is None else one.high for one in found])
    difference = truths[0] - truths[1]
    away = np.abs(np.array([one.difference for one in found]) - difference)
    paired = (lows <= difference) & (difference <= highs)
    return [has_ends, inside, naively, differs, paired, away <= _NORMAL * np.hypot(*naive)]


def campaign(
    cases: Iterable[Case], designs: Sequence[Design], *, simulations: int, seed: int, processes: int
) -> Iterator[Cell]:
    """All cells, the slowest first."""
    jobs = sorted(product(cases, designs), key=lambda job: -job[1].n_videos * job[0].n_tasks)
    run = partial(_measure, simulations=simulations, seed=seed)
    if processes == 1:
        for cells in map(run, jobs):
            yield from cells
        return
    with ProcessPoolExecutor(processes) as pool:
        for cells in pool.map(run, jobs):
            yield from cells


def _measure(job: tuple[Case, Design], *, simulations: int, seed: int) -> list[Cell]:
    return measure(*job, simulations=simulations, seed=seed)


def table(cells: Sequence[Cell]) -> str:
    """A line for each metric: mean, lowest and highest share over its cells."""
    lines = [f"{'':35} {'interval':^20} {'naive':^13} {'difference':^20} {'naive':^13}"]
    head = f"{'mean':>6} {'lowest':>6} {'highest':>6}"
    short = f"{'mean':>6} {'lowest':>6}"
    lines.append(f"{'% that cover':35} {head} {short} {head} {short} {'cells':>6} {'without':>8}")
    for name in dict.fromkeys((cell.case, cell.metric) for cell in cells):
        mine = [cell for cell in cells if (cell.case, cell.metric) == name]
        columns = []
        for values, has_highest in (
            ([cell.covers for cell in mine], True),
            ([cell.naive for cell in mine], False),
            ([cell.paired for cell in mine], True),
            ([cell.paired_naive for cell in mine], False),
        ):
            numbers = [np.mean(values), np.min(values), *([np.max(values)] if has_highest else [])]
            columns.append(" ".join(f"{number:6.1f}" for number in numbers))
        without = f"{100 * sum(c.n_without for c in mine) / sum(c.n for c in mine):7.2f}%"
        lines.append(f"{': '.join(name):35} {' '.join(columns)} {len(mine):6} {without}")
    return "\n".join(lines)


def line(cell: Cell) -> str:
    """A cell in words."""
    design = cell.design
    return (
        f"{cell.case}: {cell.metric}, {design.n_videos} videos, correlation "
        f"{design.correlation:g}, flips {design.flips:.0%}: interval {cell.covers:.1f} % "
        f"(naive {cell.naive:.1f}), difference {cell.paired:.1f} % (naive {cell.paired_naive:.1f})"
        f" of {cell.n - cell.n_without:,}"
    )


def main() -> int:
    """Run the campaign; 1 where a cell stays outside."""
    options = _options()
    start = time.monotonic()
    cases = (
        [with_best(case, share) for case in CASES for share in (0.05, 0.95)]
        if options.hard
        else CASES
    )
    designs = [
        Design(n_videos, correlation, flips, options.runs)
        for n_videos, correlation, flips in product(options.videos, CORRELATIONS, FLIPS)
    ]
    run = partial(campaign, processes=options.processes)
    cells = list(run(cases, designs, simulations=options.simulations, seed=options.seed))
    order = {case.name: place for place, case in enumerate(cases)}
    cells.sort(key=lambda cell: (order[cell.case], cell.metric, cell.design))
    print(table(cells))
    again = {(cell.case, cell.design) for cell in cells if cell.outside()}
    by_name = {case.name: case for case in cases}
    print(f"\n{sum(bool(cell.outside()) for cell in cells)} of {len(cells)} cells are outside "
          f"{LOWEST} to {HIGHEST} %; drawn again with {5 * options.simulations:,}:")  # fmt: skip
    failures = 0
    metrics = {(cell.case, cell.metric, cell.design) for cell in cells if cell.outside()}
    for case, design in sorted(again, key=lambda one: (order[one[0]], one[1])):
        for cell in run(
            [by_name[case]], [design], simulations=5 * options.simulations, seed=options.seed + 1
        ):
            if (cell.case, cell.metric, cell.design) in metrics:
                failures += bool(cell.outside())
                print(f"  {'OUTSIDE' if cell.outside() else 'inside':8} {line(cell)}")
    print(f"{failures} cells stay outside, after {time.monotonic() - start:.0f} s\n")
    if options.power:
        print(power_table(simulations=max(100, options.simulations // 4), seed=options.seed))
    return 1 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--videos", type=int, nargs="+", default=VIDEOS)
    parser.add_argument("--runs", type=int, default=1, help="judge runs")
    parser.add_argument("--hard", action="store_true", help="captioners right in 5 % or 95 %%")
    parser.add_argument("--power", action=argparse.BooleanOptionalAction, default=True)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
