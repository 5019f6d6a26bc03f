"""The campaign of faults: whatever happens, the numbers are right and nothing is paid twice."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from faults import PASSING_FAULTS, SPOILT_REPLIES, Scenario, run_scenario
from told_questions import N_CALLS

N_SCENARIOS = 200
CALM = Scenario(
    seed=0,
    benchmark="capquiz",
    n_processes=1,
    n_questions=12,
    concurrency=4,
    latency_s=0.0,
    faults=(),
    fault_rate=0.0,
    kills=(),
    disk_bytes=None,
    outage=None,
)


def test_the_campaign_passes() -> None:
    """Killed, refused, cut off and out of disk, the engine ends with the verdicts of a calm run."""
    script = Path(__file__).parents[2] / "benchmarks" / "faults.py"
    # In a process of its own: forks of one that has imported torch are slow.
    done = subprocess.run(
        [sys.executable, str(script), "--scenarios", str(N_SCENARIOS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{N_SCENARIOS} of {N_SCENARIOS} scenarios passed" in done.stdout


def test_the_campaign_plays_every_benchmark_and_every_fault() -> None:
    """No benchmark, fault, spoilt reply, kill, full disk or outage is left to chance."""
    scenarios = [Scenario.draw(seed) for seed in range(N_SCENARIOS)]
    for name in N_CALLS:
        mine = [scenario for scenario in scenarios if scenario.benchmark == name]
        assert len(mine) > N_SCENARIOS / 10
        assert {fault for scenario in mine for fault in scenario.faults} >= {*PASSING_FAULTS}
        assert {reply for scenario in mine for reply in scenario.spoilt} == {*SPOILT_REPLIES}
        assert all(
            any(getattr(s, what) for s in mine) for what in ("kills", "disk_bytes", "outage")
        )


@pytest.mark.parametrize("benchmark", N_CALLS)
def test_the_campaign_can_fail(benchmark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that says something else than expected is found out, on every benchmark."""
    calm = replace(CALM, benchmark=benchmark)
    assert not run_scenario(calm).failures
    monkeypatch.setattr("faults.Scenario.expected", lambda *_: "another verdict")
    words = "verdicts differ from those that the judge was told to give"
    assert words in run_scenario(calm).failures


def test_a_question_that_is_lost_for_no_reason_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Refused requests lose their questions; a loss that the server did not cause is a failure."""
    spoilt = replace(CALM, n_questions=40, spoilt=("filter",), spoilt_rate=0.3)
    outcome = run_scenario(spoilt)
    assert not outcome.failures
    assert outcome.n_starts > 1
    monkeypatch.setattr("faults._Play._must_be_lost", lambda *_: False)
    assert any("was not refused" in failure for failure in run_scenario(spoilt).failures)
