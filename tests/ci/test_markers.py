"""Tests that need a real model are left out unless they are asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("chosen", "n_chosen"), [("not cli", 0), ("cli", 0), ("real", 6)])
def test_a_real_model_is_asked_for_by_name(chosen: str, n_chosen: int) -> None:
    """Neither half of ``make test`` installs or asks a real model."""
    file = "tests/runs/test_runs_of_a_real_judge.py"
    line = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", chosen, file)
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.count(f"{file}::") == n_chosen, done.stdout
