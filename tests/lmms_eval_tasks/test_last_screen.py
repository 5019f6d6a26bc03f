"""What is printed when the process ends, and where nothing is."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from lmms_eval_captions.lmms_eval_tasks import last_screen
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN, FinishedRun

RUN = FinishedRun({"predict_only": True, "tasks": {"capquiz": {}}}, Path("out"), "s")


@pytest.fixture(autouse=True)
def two_runs(bench: pytest.MonkeyPatch) -> None:
    """A process with two runs that are over, and two errors that say the same."""
    bench.setattr(THIS_RUN, "finished", [RUN, RUN])
    bench.setattr(THIS_RUN, "errors", ["it ended early", "it ended early"])
    bench.delenv("RANK", raising=False)


def test_runs_are_shown_and_then_errors(capfd: pytest.CaptureFixture[str]) -> None:
    """A screen for each run, and each error once, on standard error."""
    last_screen._say(os.getpid())
    shown = capfd.readouterr()
    assert shown.out.count("--model_args path=out") == 2
    assert shown.err == "it ended early\n"


def test_other_ranks_and_forked_children_say_nothing(
    capfd: pytest.CaptureFixture[str], bench: pytest.MonkeyPatch
) -> None:
    """Four processes of a run print one screen."""
    last_screen._say(os.getpid() + 1)
    bench.setenv("RANK", "1")
    last_screen._say(os.getpid())
    assert capfd.readouterr() == ("", "")


def test_a_reader_that_is_gone_is_no_error(bench: pytest.MonkeyPatch) -> None:
    """As behind ``| head``, or in a service without standard output."""
    closed = io.StringIO()
    closed.close()
    for stream in (closed, None):
        bench.setattr(sys, "stdout", stream)
        last_screen.say()
