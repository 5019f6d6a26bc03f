"""Check of finished runs: scores that must not be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import isnan
from pathlib import Path

from lmms_eval_captions.analysis.results_folder import RunResults, TaskResults, read_all_results
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.judging.reasons import help_against
from lmms_eval_captions.lmms_eval_tasks.sentence import sentence
from lmms_eval_captions.lmms_eval_tasks.signature import Signature


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of what passes."""

    max_unscored: float
    """Largest share of unscored questions, in [0, 1]."""
    accept_doubts: bool = False
    """True if a suspicious judge is a warning, not a problem."""


@dataclass(slots=True)
class Report:
    """Lines of a check."""

    lines: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """Lines that are problems or warnings."""
    problems: list[str] = field(default_factory=list)
    """``<task>: <problem>``, with advice if there is any."""
    paths: list[Path] = field(default_factory=list)
    """Checked files."""
    n_passed: int = 0
    """Tasks and groups without a problem."""

    def add(self, kind: str, text: str) -> None:
        """Add a line: ``ok``, ``problem``, ``warning``, or empty for more on the line before."""
        line = f"  {kind:<9}{text}"
        self.lines.append(line)
        if kind in ("problem", "warning"):
            self.warnings.append(line)
        self.problems += [text] * (kind == "problem")
        self.n_passed += kind == "ok"

    def problem(self, text: str) -> None:
        """Add a problem."""
        self.add("problem", text)

    def last_line(self, command: str) -> str:
        """Return a sentence that sums up the check, after the command's name."""
        if self.problems:
            more = len(self.problems) - 1
            others = f" ({_counted(more, 'more problem', 'more problems')} above)" if more else ""
            return sentence(f"{command}: problem{others}: {self.problems[0]}")
        checked = _counted(self.n_passed, "task or group", "tasks and groups")
        where = f" in {self.paths[-1]}" if self.paths else ""
        more = len(self.paths) - 1
        others = f" and {_counted(more, 'other file', 'other files')}" if more > 0 else ""
        return f"{command}: ok: {checked} checked{where}{others}"


def check_folder(folder: Path, limits: Limits, *, since_s: float | None = None) -> Report:
    """Check the newest results of every task of every model below lmms-eval's output folder.

    Runs that ended before ``since_s``, in seconds since the epoch, are left out.

    Raises:
        DataError: If there is no results file, none since then, or one cannot be read.
    """
    report = Report()
    models = read_all_results(folder)
    if since_s is not None:
        newest = max(run.finished_s for runs in models for run in runs)
        if newest < since_s:
            raise DataError(
                f"{folder}: no run ended since {_moment(since_s)}, the newest ended "
                f"{_moment(newest)}: the last run wrote no results, see the end of its log"
            )
        models = [[run for run in runs if run.finished_s >= since_s] for runs in models]
    for runs in models:
        for run, names in _newest(runs):
            check_run(report, run, limits, names)
    return report


def check_run(
    report: Report, run: RunResults, limits: Limits, names: Iterable[str] | None = None
) -> None:
    """Add the check of one run, by default of all its tasks and groups, to a report."""
    report.paths.append(run.path)
    report.lines.append(str(run.path))
    tasks = {name: run.tasks[name] for name in (run.tasks if names is None else names)}
    if not any(task.signature is not None or task.is_prediction for task in tasks.values()):
        report.problem(
            f"{run.path} holds no task of lmms-eval-captions: name one with --tasks, such as "
            "--tasks vdc_score"
        )
    for name, task in tasks.items():
        if task.is_prediction:
            _check_predictions(report, run, name)
        else:
            check_task(report, name, task, limits)
    add_warnings(report, run.judging)


def add_warnings(report: Report, judging: Mapping[str, object]) -> None:
    """Add the warnings of a judging document."""
    warnings = judging.get("warnings")
    for warning in warnings if isinstance(warnings, list) else ():
        report.add("warning", str(warning))


def check_task(report: Report, name: str, task: TaskResults, limits: Limits) -> None:
    """Add the check of one task or group; those of other packages are skipped."""
    signature = task.signature
    if signature is None:
        return
    problems = list(_problems(task, signature, limits))
    for problem in problems:
        report.problem(f"{name}: {problem}")
    measured, headline = task.measured, str(task.judging.get("headline"))
    if not problems:
        scores = sorted(measured.items(), key=lambda score: score[0] != headline)
        shown = ", ".join(f"{metric} {of}" for metric, of in scores if metric != "unscored")
        report.add("ok", f"{name}: {shown or 'no number'}")
    for doubt in task.doubts if limits.accept_doubts else ():
        report.add("warning", f"{name}: {doubt}")
    if headline in measured and measured[headline].deviation is not None:
        report.add("", f"judge runs: {measured[headline].judge_words}")
    for note in dict.fromkeys(of.note for of in measured.values() if of.note):
        report.add("", f"{note}: {', '.join(m for m, of in measured.items() if of.note == note)}")
    report.add("", str(signature))


def _problems(task: TaskResults, signature: Signature, limits: Limits) -> Iterator[str]:
    unscored, unavailable, too_many = signature.unscored, signature.unavailable, ""
    if unscored and unscored.exceeds(limits.max_unscored):
        share = f" ({unscored.n / unscored.of:.2%})" if unscored.of else ""
        helps = help_against(task.unscored_reasons, task.unscored_kinds)
        too_many = f"{unscored.n} of {unscored.of} questions are unscored{share}: {helps}"
    # A metric that its signature says is unavailable (no tokenizer) is nan for that reason.
    missing = [m for m, value in task.scores.items() if isnan(value) and m not in unavailable]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        why = too_many or help_against(task.unscored_reasons, task.unscored_kinds)
        yield f"{', '.join(missing)} {are} nan: {why}"
    elif too_many:
        yield too_many
    if not limits.accept_doubts:
        yield from task.doubts


def _check_predictions(report: Report, run: RunResults, name: str) -> None:
    """Check a task of ``--predict_only``, whose captions are in the sample log."""
    captions = [str(sample.get("filtered_resps", "")) for sample in run.samples(name)]
    n_empty = sum(not caption.strip("[]'\" \n") for caption in captions)
    if len(captions) == n_empty:
        report.problem(
            f"{name}: no caption was written; see the captioner's messages in the run's log, "
            "then run it again"
        )
        return
    empty = f", {n_empty} of them empty," if n_empty else ""
    report.add(
        "ok",
        f"{name}: {_counted(len(captions), 'caption', 'captions')}{empty} written, nothing was "
        "judged (--predict_only); judge with --model caption_file --model_args "
        f"path={run.path.parent}",
    )


def _newest(runs: Sequence[RunResults]) -> Iterator[tuple[RunResults, list[str]]]:
    """Yield the runs of one model, each with its tasks that no later run scored."""
    last: dict[str, RunResults] = {}
    for run in runs:
        for name, task in run.tasks.items():
            if not (task.is_prediction and name in last):
                last[name] = run
    for run in runs:
        names = [name for name in run.tasks if last[name] is run]
        # A run without any task is reported too.
        if names or not run.tasks:
            yield run, names


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"


def _counted(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
