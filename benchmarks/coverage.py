"""Coverage of the 95% intervals of every metric on simulated benchmarks.

    python benchmarks/coverage.py --simulations 2000

draws benchmarks of 30 to 1,000 videos with unequal numbers of questions, whose verdicts on a video
go together with correlations from 0 to 0.5 and whose judge flips 0 to 15% of them (see
``simulated_benchmarks.py``), and counts for every metric how often its interval, and that of the
paired difference of two captioners, has the truth inside. A cell outside 93.5 to 96.5% is drawn
again with five times as many simulations, as one in 400 is outside by chance. ``--hard`` takes
captioners that are right in 5% or 95% of the questions, ``--runs 3`` several judge runs. Exits with
1 where a cell stays outside.
"""

# Another package is called coverage, and numba imports it where it is there: what this needs is
# imported as it runs.
from __future__ import annotations

import argparse
import os
import sys
import time
from itertools import product
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coverage_cells import Cell
    from simulated_benchmarks import Case

VIDEOS: Final = (30, 100, 300, 1000)
CORRELATIONS: Final = (0.0, 0.25, 0.5)
FLIPS: Final = (0.0, 0.05, 0.15)
HARD: Final = (0.05, 0.95)
"""Shares of right answers of ``--hard``."""
AGAIN: Final = 5
"""Times as many simulations for what was outside."""


def main() -> int:
    """Run the campaign; 1 where a cell stays outside."""
    # Each process keeps to one core, which must be said before numpy is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from coverage_cells import HIGHEST, LOWEST, campaign, line, table
    from simulated_benchmarks import CASES, Design, with_best

    options = _options()
    start = time.monotonic()
    hard = [with_best(case, share) for case in CASES for share in HARD]
    cases = hard if options.hard else list(CASES)
    designs = [
        Design(n_videos, correlation, flips, options.runs)
        for n_videos, correlation, flips in product(options.videos, CORRELATIONS, FLIPS)
    ]
    jobs = list(product(cases, designs))
    cells = []
    for cell in campaign(
        jobs, simulations=options.simulations, seed=options.seed, processes=options.processes
    ):
        cells.append(cell)
        print(line(cell), file=sys.stderr, flush=True)
    print(table(cells))
    n_outside = sum(bool(cell.outside()) for cell in cells)
    print(f"\n{n_outside} of {len(cells)} cells are outside {LOWEST} to {HIGHEST}%")
    stay = _drawn_again(cases, cells, options)
    print(f"{stay} stay outside; {time.monotonic() - start:.0f} s\n")
    return 1 if stay else 0


def _drawn_again(cases: Sequence[Case], cells: Sequence[Cell], options: argparse.Namespace) -> int:
    """Draw what was outside again, with more simulations; how many cells stay outside."""
    from coverage_cells import campaign, line

    outside = {(cell.case, cell.metric, cell.design) for cell in cells if cell.outside()}
    if not outside:
        return 0
    by_name = {case.name: case for case in cases}
    names = dict.fromkeys((name, design) for name, _, design in sorted(outside))
    simulations = AGAIN * options.simulations
    print(f"drawn again with {simulations:,} simulations:")
    again = campaign(
        [(by_name[name], design) for name, design in names],
        simulations=simulations, seed=options.seed + 1, processes=options.processes,
    )  # fmt: skip
    stay = 0
    for cell in again:
        if (cell.case, cell.metric, cell.design) in outside:
            stay += bool(cell.outside())
            print(f"  {'OUTSIDE' if cell.outside() else 'inside':8}{line(cell)}", flush=True)
    return stay


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--videos", type=int, nargs="+", default=VIDEOS)
    parser.add_argument("--runs", type=int, default=1, help="judge runs")
    parser.add_argument("--hard", action="store_true", help="captioners right in 5%% or 95%%")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
