"""The campaign of faults: whatever happens, the numbers are right and nothing is paid twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from faults import Scenario, run_scenario

N_SCENARIOS = 200


def test_the_campaign_passes() -> None:
    """Killed, refused, cut off and out of disk, the engine ends with the verdicts of a calm run."""
    script = Path(__file__).parents[1] / "benchmarks" / "faults.py"
    # In a process of its own: forks of one that has imported torch are slow.
    done = subprocess.run(
        [sys.executable, str(script), "--scenarios", str(N_SCENARIOS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{N_SCENARIOS} of {N_SCENARIOS} scenarios passed" in done.stdout


def test_the_campaign_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that answers something else than expected is found out."""
    monkeypatch.setattr("faults._expected", lambda _: "yes:5.0")
    outcome = run_scenario(Scenario(0, 1, 12, 4, 0.0, (), 0.0, (), None, None))
    assert "verdicts differ from those of a run without faults" in outcome.failures
