"""The watchdog: whatever is raised wherever in the engine, nobody waits for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SETTINGS = (
    "vdc", "vidcapbench", "vcapsbench", "capquiz", "msvd_eval", "store", "budget", "batch", "again",
    "ahead",
)  # fmt: skip
_BLIND = """
import sys
sys.path.insert(0, {folder!r})
import watchdog
watchdog.END_S = 1.0
watchdog.engine_thread.EngineThread.on_defect = lambda *_: None
sys.argv = ["watchdog.py", "--settings", "capquiz", "--only", "Slots._ended"]
sys.exit(watchdog.main())
"""


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.parametrize("setting", SETTINGS)
def test_whatever_any_await_raises_every_caption_ends(setting: str) -> None:
    """Each await of the engine in turn, once and for good, on every benchmark."""
    done = _run(str(BENCHMARKS / "watchdog.py"), "--settings", setting, "--kinds", "await")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout


@pytest.mark.parametrize("setting", ["vdc", "batch", "ahead"])
def test_whatever_any_callback_raises_every_caption_ends(setting: str) -> None:
    """Each function and callback that the engine's thread enters, every second one in this test."""
    options = ("--settings", setting, "--kinds", "start", "--share", "0.5")
    done = _run(str(BENCHMARKS / "watchdog.py"), *options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_watchdog_can_bite() -> None:
    """An engine that does not deal with its own errors is found out."""
    done = _run("-c", _BLIND.format(folder=str(BENCHMARKS)))
    assert done.returncode == 1
    assert "waits for ever" in done.stdout, done.stdout + done.stderr


def test_words_that_cannot_be_made_keep_no_caption_waiting() -> None:
    """What makes the words of errors whole raises, once and at every call, for every exception."""
    options = ("--settings", "vdc,batch", "--only", "surrogates", "--exceptions", "5")
    done = _run(str(BENCHMARKS / "watchdog.py"), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout
