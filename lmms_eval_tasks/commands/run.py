"""lmms-eval with the same arguments, then the check of what this run wrote, with an exit code."""

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

from lmms_eval_captions.judges.errors import INSTALL_EVAL, SettingsError
from lmms_eval_captions.judges.files import numbered_lines, parse_json
from lmms_eval_captions.judges.settings import read_judge_settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.commands.check import (
    Limits,
    Report,
    check_run,
    check_task,
    tell_warnings,
)
from lmms_eval_captions.lmms_eval_tasks.results_folder import TaskResults, read_results
from lmms_eval_captions.lmms_eval_tasks.run_record import RUN_RECORD

USAGE: Final = """\
usage: lmms-eval-captions run [COMMAND] ARGUMENTS

Runs lmms-eval with the same arguments, then checks what this run wrote, as check does:
  lmms-eval-captions run --model caption_file --model_args path=FILE --tasks vdc_score
A first argument that is no option is a command of its own:
  lmms-eval-captions run accelerate launch --num_processes 2 -m lmms_eval --model ...

Exit code: 0 where every score can be trusted; 1 where one cannot, or the run wrote none; 2 where
the arguments or settings cannot be used; else lmms-eval's own, 128 and its number for a signal.
"""
_LMMS_EVAL: Final = (sys.executable, "-m", "lmms_eval_captions.lmms_eval_tasks.launch")
_EVAL: Final = "eval"
"""The subcommand of lmms-eval that evaluates; it may be left out."""
_ASKING: Final = ("-h", "--help", "--power-analysis", "--power_analysis")
_LISTS: Final = ("list", "list_groups", "list_tags", "list_subtasks")
_KEPT: Final = "what was answered is kept, and the same command goes on from there"
_PASSED_ON: Final = ("SIGINT", "SIGTERM", "SIGHUP")


@dataclass(slots=True)
class Record:
    """What the processes of a run wrote down of it."""

    runs: list[Mapping[str, object]] = field(default_factory=list)
    """Each lmms-eval run that ended with results; a configuration file may have several."""
    errors: list[str] = field(default_factory=list)
    """Why others ended, a sentence each."""

    @classmethod
    def read(cls, path: Path) -> Record:
        """The record in a file; a line that was cut off ends it."""
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
        The exit code, as :data:`USAGE` has it.

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
    _require_config(arguments)
    if "--predict_only" not in arguments and "--config" not in arguments:
        read_settings()
    with tempfile.TemporaryDirectory(prefix="lmms-eval-captions-") as folder:
        record = Path(folder) / "run.jsonl"
        # Captions and tables have characters that few other encodings have.
        environment = {"PYTHONUTF8": "1", **os.environ, RUN_RECORD: str(record)}
        returncode = _run_to_its_end(_command(arguments), environment)
        if returncode == 0 and _only_asks(arguments):
            return 0
        ending = conclude(returncode, record, arguments)
    for line in ending.lines:
        print(line)
    sys.stdout.flush()
    return ending.exit_code


@dataclass(frozen=True, slots=True)
class Ending:
    """What is said behind a run, and how this process ends."""

    lines: Sequence[str]
    """The last one says all of it in one sentence."""
    exit_code: int


def conclude(returncode: int, record: Path, arguments: Sequence[str]) -> Ending:
    """Check what a run wrote that has ended.

    Args:
        returncode: Of lmms-eval; it is 0 after most errors, too.
        record: File that the run's processes wrote down in what they wrote, and why they ended.
        arguments: Of the run.

    Raises:
        DataError: If what it wrote cannot be read.
    """
    report, written = Report(), Record.read(record)
    for words in _reasons(returncode, written):
        report.problem(words)
    must_be_saved = any(word.split("=")[0] == "--output_path" for word in arguments)
    for line in written.runs:
        _check_finished(report, line, must_be_saved=must_be_saved)
    exit_code = int(bool(report.problems))
    if returncode:
        exit_code = 128 - returncode if returncode < 0 else returncode
    # The screen of the run, right above, shows the rest.
    return Ending([*report.told, report.last_line("lmms-eval-captions run")], exit_code)


def _check_finished(report: Report, line: Mapping[str, object], *, must_be_saved: bool) -> None:
    """Check a run of lmms-eval that has ended with results."""
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
    tell_warnings(report, tables)
    if must_be_saved:
        report.problem(
            "the results could not be saved to --output_path: give a folder that can be written "
            "to, and run the same command again; verdicts are kept"
        )


def _limits() -> Limits:
    try:
        return Limits(read_judge_settings().max_unscored)
    except SettingsError:
        return Limits(0.0)  # nothing was judged, or the run says why


def _reasons(returncode: int, record: Record) -> Iterator[str]:
    """Why the run, or a part of it, has no results."""
    if -returncode == signal.SIGINT:
        yield f"stopped by Ctrl-C: {_KEPT}"
    elif -returncode == signal.SIGKILL:
        yield (
            "lmms-eval was killed, by the system where memory ran out: give it more, or a smaller "
            f"--batch_size; {_KEPT}"
        )
    elif returncode < 0:
        yield f"lmms-eval was ended by {signal.Signals(-returncode).name}: {_KEPT}"
    yield from dict.fromkeys(record.errors)
    if record.errors or returncode < 0:
        return
    if returncode:
        yield (
            f"lmms-eval ended with exit code {returncode}, which the end of what it said, above, "
            "explains; fix that and run the same command again"
        )
    elif not record.runs:
        yield (
            "lmms-eval scored no task of lmms-eval-captions: name one with --tasks, such as "
            "--tasks vdc_score, and see above for what else it said"
        )


def _require_config(arguments: Sequence[str]) -> None:
    """Raise where a file of arguments is not there: lmms-eval takes ten seconds to say so."""
    names = [value for option, value in pairwise(arguments) if option == "--config"]
    names += [word.partition("=")[2] for word in arguments if word.startswith("--config=")]
    for name in names:
        if not Path(name).is_file():
            raise SettingsError(
                f"--config: expected a YAML file of lmms-eval's arguments, found no file "
                f"{name!r:.80}; give the path of one, or the arguments themselves"
            )


def _command(arguments: Sequence[str]) -> list[str]:
    """The command line of the child."""
    if arguments[0].startswith("-"):
        return [*_LMMS_EVAL, *arguments]
    if arguments[0] == _EVAL:
        return [*_LMMS_EVAL, *arguments[1:]]
    return list(arguments)


def _only_asks(arguments: Sequence[str]) -> bool:
    """Whether lmms-eval answers a question and evaluates nothing."""
    lists = any(name == "--tasks" and value in _LISTS for name, value in pairwise(arguments))
    lists = lists or any(f"--tasks={value}" in arguments for value in _LISTS)
    return lists or any(option in arguments for option in _ASKING)


def _run_to_its_end(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command, with signals passed on, and wait for its end.

    Raises:
        SettingsError: If it cannot be started.
    """
    sys.stdout.flush()
    with _passed_on() as to_child:
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
def _passed_on() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Pass signals on for a while, from before the child is there, to the one that is then named.

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
        # Who started this may have it ignored, as nohup does; the child then ignores it, too.
        if handler != signal.SIG_IGN:
            signal.signal(number, pass_on)
    try:
        yield to_child
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Whether this process is in the foreground of its terminal; not, where it has none."""
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
