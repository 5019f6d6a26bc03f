"""Runs whose output is stamped with the time: what is said when, silence, and an end by force."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import stamped_runs
from stamped_runs import StampedRun, run_stamped


def _run(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str, limit_s: float) -> StampedRun:
    monkeypatch.setattr(stamped_runs, "command", lambda _: [sys.executable, "-c", program])
    return run_stamped(folder / "out", env=dict(os.environ), timeout_s=limit_s)


def test_a_silence_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The longest time between two pieces of output counts, in a bar that is redrawn, too."""
    program = (
        "import sys, time\nprint('a', flush=True)\n"
        "time.sleep(2)\nsys.stderr.write('\\rb ')\nsys.stderr.flush()\nprint('c')"
    )
    done = _run(monkeypatch, tmp_path, program, 30)
    assert done.run.returncode == 0
    assert done.run.log.split() == ["a", "b", "c"]
    assert 1 < done.longest_silence_s < done.wall_s
    first, *others = (tmp_path / "out.stamped.log").read_text().splitlines()
    assert first.endswith("a")
    assert others[0].startswith("[")


def test_a_run_without_end_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run that outlasts its time is killed, and its silence until then counts."""
    program = "import time\nprint('a', flush=True)\ntime.sleep(60)"
    done = _run(monkeypatch, tmp_path, program, 1.5)
    assert done.run.returncode < 0
    assert done.wall_s < 30
    assert done.longest_silence_s > 0
