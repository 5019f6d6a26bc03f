"""Equal runs started side by side pay once, whichever benchmark they judge."""

from __future__ import annotations

import signal

import pytest

from side_by_side import MOST_REPEATED, EqualRuns, judge_side_by_side
from told_questions import N_CALLS


@pytest.mark.parametrize("benchmark", N_CALLS)
def test_equal_runs_that_start_together_pay_once(benchmark: str) -> None:
    """Of eight processes on the same questions each gets all verdicts, 1 in 20 is paid again."""
    outcome = judge_side_by_side(EqualRuns(benchmark, n_processes=8, n_questions=100))
    assert outcome.n_finished == 8
    assert outcome.repeated <= MOST_REPEATED


@pytest.mark.parametrize("benchmark", N_CALLS)
def test_one_that_dies_costs_the_others_what_it_had_in_flight(benchmark: str) -> None:
    """Seven processes get all verdicts where the eighth is killed in the middle."""
    runs = EqualRuns(benchmark, n_processes=8, n_questions=200, concurrency=4, hurt=signal.SIGKILL)
    outcome = judge_side_by_side(runs)
    assert outcome.n_finished == 7
    assert outcome.repeated <= MOST_REPEATED


@pytest.mark.parametrize("benchmark", N_CALLS)
def test_one_that_stands_still_holds_nobody_up_for_ever(benchmark: str) -> None:
    """What a stopped process claimed is asked by the others when their patience is over."""
    runs = EqualRuns(benchmark, n_processes=3, n_questions=40, timeout_s=1.0, hurt=signal.SIGSTOP)
    outcome = judge_side_by_side(runs)
    assert outcome.n_finished == 2
    assert outcome.seconds < 30.0
