"""Command ``run``: lmms-eval with the same arguments, then a check of what this run wrote."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Final

from lmms_eval_captions.analysis.check import (
    Limits,
    Report,
    add_warnings,
    check_run,
    check_task,
)
from lmms_eval_captions.analysis.results_folder import TaskResults, read_results
from lmms_eval_captions.judges.errors import INSTALL_EVAL, SettingsError
from lmms_eval_captions.judges.files import numbered_lines, parse_json
from lmms_eval_captions.judges.settings import read_judge_settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.this_run import RUN_RECORD

USAGE: Final = """\
usage: lmms-eval-captions run [-o DIR] [SETTINGS] ARGUMENTS
       lmms-eval-captions run COMMAND ARGUMENTS

Runs lmms-eval with the same arguments, then checks what this run wrote, as
check does. -o DIR is short for --output_path DIR --log_samples. A first
argument that is not an option is a command that starts lmms-eval.

Exit code: 0 if every score can be trusted; 1 if one cannot, or the run wrote
none; 2 for unusable arguments or settings; else lmms-eval's own, 128 plus the
number for a signal.

example:
  lmms-eval-captions run --model caption_file --model_args path=captions.jsonl \\
      --tasks vdc_score --judge gpt-4.1-mini --max-cost 20 -o results/mine
  lmms-eval-captions run accelerate launch --num_processes 2 -m lmms_eval \\
      --model qwen2_5_vl --tasks vdc_score --output_path results/qwen
"""
_LMMS_EVAL: Final = (sys.executable, "-m", "lmms_eval_captions.lmms_eval_tasks.launch")
_ASKING: Final = ("-h", "--help", "--power-analysis", "--power_analysis")
_LISTS: Final = ("list", "list_groups", "list_tags", "list_subtasks")
_KEPT: Final = "all replies are kept, and the same command resumes"
_PASSED_ON: Final = ("SIGINT", "SIGTERM", "SIGHUP")


@dataclass(slots=True)
class Record:
    """Notes that the processes of a run wrote to a file."""

    runs: list[Mapping[str, object]] = field(default_factory=list)
    """Runs of lmms-eval that ended with results; a configuration file may have several."""
    errors: list[str] = field(default_factory=list)
    """Reasons why other runs ended, a sentence each."""

    @classmethod
    def read(cls, path: Path) -> Record:
        """Read a record up to its first damaged line."""
        record = cls()
        with suppress(ValueError, FileNotFoundError):
            for _, text in numbered_lines(path):
                line = parse_json(text)
                if isinstance(line, dict) and isinstance(line.get("judging"), dict):
                    record.runs.append(line)
                elif isinstance(line, dict) and isinstance(line.get("error"), str):
                    record.errors.append(str(line["error"]))
        return record


def run(arguments: Sequence[str]) -> int:
    """Run lmms-eval, or a command that starts it, and check what it wrote.

    Args:
        arguments: lmms-eval's, or a command with its own.

    Returns:
        Exit code, see :data:`USAGE`.

    Raises:
        SettingsError: If a setting or the command cannot be used; nothing was started.
    """
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE, end="")
        return 0
    if not arguments:
        print(USAGE)
        raise SettingsError(
            "run: expected lmms-eval's arguments, such as --model caption_file --model_args "
            "path=FILE --tasks vdc_score, got none"
        )
    if importlib.util.find_spec("lmms_eval") is None:
        raise SettingsError(f"run: lmms-eval is not installed. Run: {INSTALL_EVAL}")
    arguments = _with_output(arguments)
    if "--predict_only" not in arguments and "--config" not in arguments:
        read_settings()
    with tempfile.TemporaryDirectory(prefix="lmms-eval-captions-") as folder:
        record = Path(folder) / "run.jsonl"
        # Captions and tables hold characters that few other encodings have.
        environment = {"PYTHONUTF8": "1", **os.environ, RUN_RECORD: str(record)}
        returncode = _run_to_its_end(_command(arguments), environment)
        if returncode == 0 and _only_asks(arguments):
            return 0
        lines, exit_code = conclude(returncode, record, arguments)
    for line in lines:
        print(line)
    sys.stdout.flush()
    return exit_code


def conclude(returncode: int, record: Path, arguments: Sequence[str]) -> tuple[list[str], int]:
    """Check what a finished run wrote.

    Args:
        returncode: Of lmms-eval; 0 after most errors, too.
        record: File that the run's processes wrote their notes to.
        arguments: Of the run.

    Returns:
        Lines to print, of which the last sums up the run, and the exit code.

    Raises:
        DataError: If what the run wrote cannot be read.
    """
    report, written = Report(), Record.read(record)
    for reason in _reasons(returncode, written):
        report.problem(reason)
    must_be_saved = any(word.split("=")[0] == "--output_path" for word in arguments)
    for line in written.runs:
        _check_finished(report, line, must_be_saved=must_be_saved)
    exit_code = int(bool(report.problems))
    if returncode:
        exit_code = 128 - returncode if returncode < 0 else returncode
    # The run's own summary is right above.
    return [*report.warnings, report.last_line("lmms-eval-captions run")], exit_code


def _check_finished(report: Report, line: Mapping[str, object], *, must_be_saved: bool) -> None:
    """Check a run of lmms-eval that ended with results."""
    limits, path, judging = _limits(), line.get("results"), line.get("judging")
    if isinstance(path, str):
        (results,) = read_results(Path(path))
        check_run(report, results, limits)
        return
    tables = judging if isinstance(judging, dict) else {}
    tasks = tables.get("tasks")
    for name, task in tasks.items() if isinstance(tasks, dict) else ():
        if isinstance(task, dict):
            check_task(report, str(name), TaskResults.of_judging(task), limits)
    add_warnings(report, tables)
    if must_be_saved:
        report.problem(
            "the results could not be saved to --output_path: give a folder that can be written "
            "to, and run the same command again; verdicts are kept"
        )


def _limits() -> Limits:
    try:
        return Limits(read_judge_settings().max_unscored)
    except SettingsError:
        return Limits(0.0)  # nothing was judged, or the run reports why


def _reasons(returncode: int, record: Record) -> Iterator[str]:
    """Reasons why the run, or a part of it, has no results."""
    if -returncode == signal.SIGINT:
        yield f"stopped by Ctrl-C: {_KEPT}"
    elif -returncode == signal.SIGKILL:
        yield (
            "lmms-eval was killed, usually because memory ran out: give it more, or a smaller "
            f"--batch_size; {_KEPT}"
        )
    elif returncode < 0:
        yield f"lmms-eval was ended by {signal.Signals(-returncode).name}: {_KEPT}"
    yield from dict.fromkeys(record.errors)
    if record.errors or returncode < 0:
        return
    if returncode:
        yield (
            f"lmms-eval ended with exit code {returncode}: see its last messages above, fix that, "
            "and run the same command again"
        )
    elif not record.runs:
        yield (
            "lmms-eval scored no task of lmms-eval-captions: name one with --tasks, such as "
            "--tasks vdc_score; see also its messages above"
        )


def _with_output(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with ``-o`` and ``--output`` in lmms-eval's words."""
    if not arguments[0].startswith("-") and arguments[0] != "eval":
        return list(arguments)
    words = []
    for word in arguments:
        flag, equals, value = word.partition("=")
        if flag in ("-o", "--output"):
            words += ["--log_samples", f"--output_path{equals}{value}"]
        else:
            words.append(word)
    return words


def _command(arguments: Sequence[str]) -> list[str]:
    """Return the command line of the child."""
    if arguments[0].startswith("-"):
        return [*_LMMS_EVAL, *arguments]
    if arguments[0] == "eval":
        return [*_LMMS_EVAL, *arguments[1:]]
    return list(arguments)


def _only_asks(arguments: Sequence[str]) -> bool:
    """Return True if lmms-eval answers a question and evaluates nothing."""
    lists = any(name == "--tasks" and value in _LISTS for name, value in pairwise(arguments))
    lists = lists or any(f"--tasks={value}" in arguments for value in _LISTS)
    return lists or any(option in arguments for option in _ASKING)


def _run_to_its_end(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command, pass signals on, and wait for its end.

    Raises:
        SettingsError: If it cannot be started.
    """
    sys.stdout.flush()
    with _signals_passed_on() as to_child:
        try:
            child = subprocess.Popen(command, env=dict(env))  # noqa: S603 - the user's own command
        except OSError as error:
            raise SettingsError(
                f"run: expected options of lmms-eval, such as --model, or a command to run, got "
                f"{command[0]!r:.80}, which cannot be started ({error.strerror})"
            ) from error
        to_child(child)
        return child.wait()


@contextmanager
def _signals_passed_on() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Pass signals on to a child, also those that arrive before it has started.

    Ctrl-C reaches every process in the foreground of its terminal: the child has it already.
    """
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        if not children:
            early.append(number)
        elif not (number == signal.SIGINT and _in_foreground()):
            children[0].send_signal(number)

    def to_child(child: subprocess.Popen[bytes]) -> None:
        children.append(child)
        for number in early:
            child.send_signal(number)

    numbers = [getattr(signal, name) for name in _PASSED_ON if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        # The child inherits ignored signals, as below nohup.
        if handler != signal.SIG_IGN:
            signal.signal(number, pass_on)
    try:
        yield to_child
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Return True if this process is in the foreground of a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
