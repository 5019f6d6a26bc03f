"""``lmms-eval-captions run`` runs what it is given, and says what came of it with its exit code."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lmms_eval_captions.cli.main import main
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import RUN_RECORD

SIGNATURE = "vdc_camera|judge:j|runs:1|protocol:1|unscored:{}/100|lmms-eval-captions:0.1.0"
RUN = [sys.executable, "-m", "lmms_eval_captions.cli.main", "run"]
COUNTS = """
import signal, sys, time
count = 0
def caught(number, _):
    global count
    count += 1
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, caught)
print("ready", flush=True)
deadline = time.monotonic() + 30
while not count and time.monotonic() < deadline:
    time.sleep(0.02)
time.sleep(0.5)
print(f"caught {count}", flush=True)
"""
"""A child that counts the signals that reach it, and takes a while to end."""
SLOW_START = """
import subprocess, sys, time
from lmms_eval_captions.cli.main import main
class SlowToStart(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        time.sleep(1.0)
subprocess.Popen = SlowToStart
sys.exit(main(sys.argv[1:]))
"""
"""The command where the child is at work before its parent has gone on, as on a busy machine."""
RUNS = [
    pytest.param(RUN, id="at once"),
    pytest.param([sys.executable, "-c", SLOW_START, "run"], id="slow start"),
]


def _line(value: float | None = 40.0, n_unscored: int = 0, **more: object) -> dict[str, object]:
    """A record of a run that saved no results."""
    task = {
        "metrics": {"vdc_acc": {"value": value, "standard_error": 1.0}},
        "signature": SIGNATURE.format(n_unscored),
        **more,
    }
    return {"results": None, "judging": {"tasks": {"vdc_camera": task}, "warnings": ["Heed."]}}


def _child(*lines: object, ending: str = "") -> list[str]:
    """A command that writes a record as a run of lmms-eval does, and ends."""
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    write = f"import os; open(os.environ[{RUN_RECORD!r}], 'a').write({text!r})"
    return [sys.executable, "-c", f"{write}\n{ending}"]


@pytest.mark.parametrize(
    ("command", "exit_code", "words"),
    [
        pytest.param(_child(_line()), 0, "ok: 1 task or group checked", id="fine"),
        pytest.param(_child(_line(None)), 1, "vdc_camera: vdc_acc is nan", id="nan"),
        pytest.param(_child(_line(n_unscored=9)), 1, "9 of 100 questions", id="unscored"),
        pytest.param(_child(_line(doubts=["It echoes."])), 1, "It echoes.", id="doubt"),
        pytest.param(_child(), 1, "scored no task of lmms-eval-captions", id="nothing"),
        pytest.param(_child({"error": "No data."}), 1, "problem: No data.", id="error"),
        pytest.param(
            _child(_line(), {"error": "No data."}), 1, "problem: No data.", id="one-of-two"
        ),
        pytest.param(
            _child(ending="raise SystemExit(3)"), 3, "ended with exit code 3", id="exit-code"
        ),
        pytest.param(
            _child(ending="os.kill(os.getpid(), 9)"), 137, "was killed", id="out-of-memory"
        ),
        pytest.param(_child(_line(), "[1", ending=""), 0, "ok: 1 task", id="what-is-no-record"),
    ],
)
def test_the_exit_code_is_that_of_what_this_run_wrote(
    command: list[str], exit_code: int, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever lmms-eval's own is, which is 0 after an error; the last line says why."""
    assert main(["run", *command]) == exit_code
    last = capfd.readouterr().out.splitlines()[-1]
    assert last.startswith("lmms-eval-captions run: ")
    assert words in last


def test_an_older_results_file_says_nothing_of_this_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A run that failed is a failure whatever fine results lie where it should have saved its."""
    ours = {"tasks": {"vdc_camera": {"signature": SIGNATURE.format(0)}}}
    results = {"results": {"vdc_camera": {"vdc_acc,none": 40.0}}, "lmms_eval_captions": ours}
    path = tmp_path / "20260101_000000_results.json"
    path.write_text(json.dumps(results))
    assert main(["check", str(tmp_path)]) == 0
    assert main(["run", *_child(), "--output_path", str(tmp_path)]) == 1
    assert main(["run", *_child({**_line(), "results": str(path)})]) == 0
    assert "checked in" in capfd.readouterr().out.splitlines()[-1]


def test_warnings_are_shown_and_are_no_problem(capfd: pytest.CaptureFixture[str]) -> None:
    """They stand above the last line."""
    assert main(["run", *_child(_line())]) == 0
    assert "warning  Heed." in capfd.readouterr().out


def test_results_that_could_not_be_saved_are_a_problem(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *_child(_line()), "--output_path", "out"]) == 1
    assert "could not be saved to --output_path" in capfd.readouterr().out.splitlines()[-1]


def test_questions_to_lmms_eval_are_not_checked(capfd: pytest.CaptureFixture[str]) -> None:
    """A list of tasks scores nothing, and is fine."""
    assert main(["run", *_child(), "--tasks", "list"]) == 0
    assert "problem" not in capfd.readouterr().out


def _wait_for(read: Callable[[], str], words: str) -> str:
    text, deadline = "", time.monotonic() + 30
    while words not in text:
        assert time.monotonic() < deadline, text
        text += read()
    return text


@pytest.mark.parametrize("command", RUNS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_it_alone_is_passed_on_once(number: signal.Signals, command: list[str]) -> None:
    with subprocess.Popen(
        [*command, sys.executable, "-c", COUNTS], stdout=subprocess.PIPE, start_new_session=True
    ) as run:
        assert run.stdout is not None
        pipe = run.stdout
        _wait_for(lambda: pipe.readline().decode(), "ready")
        run.send_signal(number)
        said = pipe.read().decode()
        assert run.wait(30) == 1
    assert said.splitlines()[0] == "caught 1"
    assert said.splitlines()[-1].startswith("lmms-eval-captions run: problem")


@pytest.mark.parametrize("command", RUNS)
def test_ctrl_c_reaches_the_child_once(command: list[str]) -> None:
    """The terminal interrupts both; the child is not interrupted a second time by its parent."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(command[0], [*command, sys.executable, "-c", COUNTS])  # noqa: S606
    try:
        said = _wait_for(lambda: os.read(terminal, 4096).decode(), "ready")
        os.write(terminal, b"\x03")
        said += _wait_for(lambda: os.read(terminal, 4096).decode(), "lmms-eval-captions run: ")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    finally:
        os.close(terminal)
    assert "caught 1" in said
