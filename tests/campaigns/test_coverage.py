"""The campaign of simulated benchmarks, in short; see benchmarks/coverage.py."""

from __future__ import annotations

from math import sqrt

import pytest

from coverage_cells import HIGHEST, LOWEST, Cell, measure, table
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from simulated_benchmarks import CASES, Case, Design
from vdc_power import Captioners, measure_power

SIMULATIONS = 300
CHANCE = 3.5 * 100 * sqrt(0.05 * 0.95 / SIMULATIONS)
"""What so few simulations may be off, in percent."""
ACCR = ("accuracy", "completeness", "conciseness", "relevance")
SAME_FUNCTION = {
    *(("msvd_eval", name) for name in ACCR[1:]),
    *(("own_gveval", name) for name in (*ACCR, "avg")),
    *(("own_rating", name) for name in ("trustworthiness", "coverage")),
}
"""Metrics that are computed as another one is: MSVD-Eval's accuracy and mean, own clips' rating."""


def test_every_metric_is_simulated() -> None:
    """A new metric that a judge decides must show that its interval covers, too."""
    judged = {name: one for name, one in all_benchmarks().items() if one.measure is None}
    every = {(name, metric) for name, one in judged.items() for metric in one.metrics}
    cases = {(case.benchmark, metric) for case in CASES for metric in case.metrics}
    assert every - SAME_FUNCTION == cases


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_intervals_cover(case: Case) -> None:
    """Forty videos that go together, 5 % flips: intervals and differences cover, naive ones not."""
    design = Design(n_videos=40, correlation=0.25, flips=0.05)
    for cell in measure(case, design, simulations=SIMULATIONS, seed=0):
        for share in (cell.covers, cell.paired):
            assert LOWEST - CHANCE <= share <= HIGHEST + CHANCE, cell
        if case.questions[1] > 4:
            assert cell.naive < 80.0


def test_several_judge_runs_cover_their_mean() -> None:
    """Three judge runs with 15 % flips are no three times as many videos."""
    design = Design(n_videos=40, correlation=0.1, flips=0.15, n_runs=3)
    case = next(case for case in CASES if case.benchmark == "capquiz")
    for cell in measure(case, design, simulations=SIMULATIONS, seed=0):
        assert LOWEST - CHANCE <= cell.covers <= HIGHEST + CHANCE


def test_a_point_on_vdc_is_found() -> None:
    """Two similar captioners over the whole of VDC: a difference of 1 point is found."""
    captioners = Captioners(correlation=0.1, shared=0.7, coupled=0.5, flips=0.05)
    assert measure_power(captioners, simulations=150, seed=0).found >= 70.0


def test_the_campaign_tells_what_does_not_cover() -> None:
    """A cell outside the range is named, and its table holds it."""
    cell = Cell("c", "m", Design(30, 0.0, 0.0), 2000, 0, 91.0, 80.0, 95.0, 90.0)
    assert cell.outside() == ["interval"]
    assert "91.0" in table([cell])
