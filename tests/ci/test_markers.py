"""Campaigns and tests that need a real model are left out unless they are asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("file", "marker", "n_tests"),
    [("runs/test_runs_of_a_real_judge.py", "real", 6), ("campaigns/test_faults.py", "nightly", 8)],
)
@pytest.mark.parametrize("chosen", ["not cli", "cli", "real", "nightly"])
def test_a_slow_test_is_asked_for_by_name(
    file: str, marker: str, n_tests: int, chosen: str
) -> None:
    """Neither half of ``make test`` installs a real model or runs a campaign."""
    line = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", chosen, f"tests/{file}")
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.count(f"{file}::") == (n_tests if chosen == marker else 0), done.stdout
