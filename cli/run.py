"""Commands ``run``, which is lmms-eval with a check of its results, and ``check``."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, Final

from lmms_eval_captions.analysis.check import Check
from lmms_eval_captions.analysis.results_folder import TaskResults, warnings_in
from lmms_eval_captions.judges.errors import INSTALL_EVAL, SettingsError
from lmms_eval_captions.judges.files import numbered_lines, parse_json
from lmms_eval_captions.judges.settings import read_judge_settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import RUN_RECORD

_LMMS_EVAL: Final = (sys.executable, "-m", "lmms_eval_captions.lmms_eval_tasks.integration.launch")
_ASKING: Final = ("-h", "--help", "--power-analysis", "--power_analysis")
_LISTS: Final = ("list", "list_groups", "list_tags", "list_subtasks")
_KEPT: Final = "all replies are kept, and the same command resumes"
_PASSED_ON: Final = ("SIGINT", "SIGTERM", "SIGHUP")


def check(arguments: Namespace) -> int:
    """Check the newest results below a folder."""
    report = Check(read_judge_settings().max_unscored, accept_doubts=arguments.accept_doubts)
    report.folder(arguments.folder, arguments.since)
    for line in report.lines():
        print(line)
    print(report.last_line("lmms-eval-captions check"))
    return 1 if report.texts("problem") else 0


def run(arguments: Sequence[str]) -> int:
    """Run lmms-eval, or a command that starts it, and check what it wrote.

    Args:
        arguments: lmms-eval's, or a command with its own.

    Raises:
        SettingsError: If a setting or the command cannot be used; nothing was started.
    """
    if not arguments:
        raise SettingsError(
            "run: expected lmms-eval's arguments, such as --model caption_file --model_args "
            "path=FILE --tasks vdc_score, got none"
        )
    if importlib.util.find_spec("lmms_eval") is None:
        raise SettingsError(f"run: lmms-eval is not installed. Run: {INSTALL_EVAL}")
    is_ours = arguments[0].startswith("-") or arguments[0] == "eval"
    words = list(_with_output_path(arguments) if is_ours else arguments)
    if "--predict_only" not in words and "--config" not in words:
        read_settings()
    command = [*_LMMS_EVAL, *words[arguments[0] == "eval" :]] if is_ours else words
    with tempfile.TemporaryDirectory(prefix="lmms-eval-captions-") as folder:
        record = Path(folder) / "run.jsonl"
        # Captions and tables hold characters that few other encodings have.
        environment = {"PYTHONUTF8": "1", **os.environ, RUN_RECORD: str(record)}
        returncode = _run_to_its_end(command, environment)
        if returncode == 0 and _only_asks(words):
            return 0
        lines, exit_code = conclude(returncode, record, words)
    for line in lines:
        print(line)
    sys.stdout.flush()
    return exit_code


def _with_output_path(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments with ``-o`` and ``--output`` in lmms-eval's words."""
    for word in arguments:
        flag, equals, value = word.partition("=")
        if flag in ("-o", "--output"):
            yield from ("--log_samples", f"--output_path{equals}{value}")
        else:
            yield word


def _only_asks(words: Sequence[str]) -> bool:
    """Return True if lmms-eval answers a question and evaluates nothing."""
    lists = any(name == "--tasks" and value in _LISTS for name, value in pairwise(words))
    lists = lists or any(f"--tasks={value}" in words for value in _LISTS)
    return lists or any(option in words for option in _ASKING)


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
    try:
        report = Check(read_judge_settings().max_unscored)
    except SettingsError:
        report = Check(0.0)  # nothing was judged, or the run reports why
    notes = list(_notes(record))
    runs = [note for note in notes if isinstance(note.get("judging"), dict)]
    errors = [str(note["error"]) for note in notes if isinstance(note.get("error"), str)]
    report.add("problem", *_reasons(returncode, errors, has_runs=bool(runs)))
    must_be_saved = any(word.split("=")[0] == "--output_path" for word in arguments)
    for note in runs:
        _check_finished(report, note, must_be_saved=must_be_saved)
    exit_code = int(bool(report.texts("problem")))
    if returncode:
        exit_code = 128 - returncode if returncode < 0 else returncode
    # The run's own summary is right above.
    warnings = report.lines(["problem", "warning"])
    return [*warnings, report.last_line("lmms-eval-captions run")], exit_code


def _notes(record: Path) -> Iterator[dict[str, Any]]:
    """Yield the notes of a run up to the first damaged line: results, or why there are none."""
    with suppress(ValueError, FileNotFoundError):
        for _, text in numbered_lines(record):
            note = parse_json(text)
            if isinstance(note, dict):
                yield note


def _reasons(returncode: int, errors: Sequence[str], *, has_runs: bool) -> Iterator[str]:
    """Yield reasons why the run, or a part of it, has no results."""
    if -returncode == signal.SIGINT:
        yield f"stopped by Ctrl-C: {_KEPT}"
    elif -returncode == signal.SIGKILL:
        yield (
            "lmms-eval was killed, usually because memory ran out: give it more, or a smaller "
            f"--batch_size; {_KEPT}"
        )
    elif returncode < 0:
        yield f"lmms-eval was ended by {signal.Signals(-returncode).name}: {_KEPT}"
    yield from dict.fromkeys(errors)
    if errors or returncode < 0:
        return
    if returncode:
        yield (
            f"lmms-eval ended with exit code {returncode}: see its last messages above, fix that, "
            "and run the same command again"
        )
    elif not has_runs:
        yield (
            "lmms-eval scored no task of lmms-eval-captions: name one with --tasks, such as "
            "--tasks vdc_score; see also its messages above"
        )


def _check_finished(report: Check, note: Mapping[str, Any], *, must_be_saved: bool) -> None:
    """Check a run of lmms-eval that ended with results."""
    if isinstance(note.get("results"), str):
        report.folder(Path(note["results"]))
        return
    for name, task in note["judging"].get("tasks", {}).items():
        report.task(name, TaskResults.of_judging(task))
    report.add("warning", *warnings_in(note["judging"]))
    if must_be_saved:
        report.add(
            "problem",
            "the results could not be saved to --output_path: give a folder that can be written "
            "to, and run the same command again; verdicts are kept",
        )


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
        with Path("/dev/tty").open("rb", buffering=0) as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
