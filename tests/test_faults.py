"""The campaign of faults: whatever happens, the numbers are right and nothing is paid twice."""

from __future__ import annotations

import pytest

from faults import Scenario, run_scenario

N_SCENARIOS = 200


@pytest.mark.parametrize("first", range(0, N_SCENARIOS, 10))
def test_ten_scenarios(first: int) -> None:
    """Killed, refused, cut off and out of disk, the engine ends with the verdicts of a calm run."""
    for seed in range(first, first + 10):
        outcome = run_scenario(Scenario.draw(seed))
        assert not outcome.failures, outcome
