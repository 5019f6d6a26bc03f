"""Check of finished runs: scores that must not be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import isnan
from pathlib import Path

from lmms_eval_captions.analysis.results_folder import (
    RunResults,
    TaskResults,
    read_all_results,
)
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.reasons import help_against
from lmms_eval_captions.lmms_eval_tasks.sentence import sentence


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
    paths: list[Path] = field(default_factory=list)
    """Checked files."""
    passed: list[str] = field(default_factory=list)
    """Tasks and groups without a problem."""
    problems: list[str] = field(default_factory=list)
    """``<task>: <problem>``, with advice where there is one."""

    def file(self, path: Path) -> None:
        """Begin the lines of a file."""
        self.paths.append(path)
        self.lines.append(str(path))

    def ok(self, name: str, text: str) -> None:
        """Add a task without a problem."""
        self.passed.append(name)
        self._add("ok", f"{name}: {text}")

    def problem(self, text: str) -> None:
        """Add a problem."""
        self.problems.append(text)
        self._add("problem", text)

    def warning(self, text: str) -> None:
        """Add a warning."""
        self._add("warning", text)

    def detail(self, text: str) -> None:
        """Add to the line before."""
        self._add("", text)

    def last_line(self, command: str) -> str:
        """Return a sentence that sums up the check, after the command's name."""
        if self.problems:
            more = len(self.problems) - 1
            others = f" ({_counted(more, 'more problem', 'more problems')} above)" if more else ""
            return sentence(f"{command}: problem{others}: {self.problems[0]}")
        checked = _counted(len(self.passed), "task or group", "tasks and groups")
        where = f" in {self.paths[-1]}" if self.paths else ""
        more = len(self.paths) - 1
        others = f" and {_counted(more, 'other file', 'other files')}" if more > 0 else ""
        return f"{command}: ok: {checked} checked{where}{others}"

    def _add(self, kind: str, text: str) -> None:
        line = f"  {kind:<9}{text}"
        self.lines.append(line)
        if kind in ("problem", "warning"):
            self.warnings.append(line)


def check_folder(folder: Path, limits: Limits, *, since_s: float | None = None) -> Report:
    """Check the newest results of every task of every model below a folder.

    Args:
        folder: lmms-eval's ``--output_path``, or one results file.
        limits: Limits of what passes.
        since_s: Seconds since the epoch; runs that ended before are left out.

    Raises:
        DataError: If there is no results file, none since then, or one cannot be read.
    """
    report = Report()
    models = read_all_results(folder)
    if since_s is not None:
        models = _since(folder, models, since_s)
    for runs in models:
        for run, names in _newest(runs):
            check_run(report, run, limits, names)
    return report


def check_run(
    report: Report, run: RunResults, limits: Limits, names: Iterable[str] | None = None
) -> None:
    """Add the check of one run to a report.

    Args:
        report: Report to add to.
        run: Finished run.
        limits: Limits of what passes.
        names: Tasks and groups to check (default: all).
    """
    report.file(run.path)
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
        report.warning(str(warning))


def check_task(report: Report, name: str, task: TaskResults, limits: Limits) -> None:
    """Add the check of one task or group; those of other packages are skipped."""
    signature = task.signature
    if signature is None:
        return
    problems = list(_problems(task, limits))
    for problem in problems:
        report.problem(f"{name}: {problem}")
    if not problems:
        report.ok(name, _shown_scores(task) or "no number")
    if limits.accept_doubts:
        for doubt in task.doubts:
            report.warning(f"{name}: {doubt}")
    for note in _notes(task):
        report.detail(note)
    difference = _shown_difference(task)
    if difference:
        report.detail(difference)
    report.detail(str(signature))


def _problems(task: TaskResults, limits: Limits) -> Iterator[str]:
    signature = task.signature
    unscored = signature.unscored if signature else None
    unavailable = signature.unavailable if signature else frozenset[str]()
    too_many = ""
    if unscored and unscored.exceeds(limits.max_unscored):
        share = f" ({unscored.n / unscored.of:.2%})" if unscored.of else ""
        helps = help_against(task.unscored_reasons)
        too_many = f"{unscored.n} of {unscored.of} questions are unscored{share}: {helps}"
    # A metric that its signature says is unavailable (no tokenizer) is nan for that reason.
    missing = [m for m, value in task.scores.items() if isnan(value) and m not in unavailable]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        why = too_many or help_against(task.unscored_reasons)
        yield f"{', '.join(missing)} {are} nan: {why}"
    elif too_many:
        yield too_many
    if not limits.accept_doubts:
        yield from task.doubts


def _check_predictions(report: Report, run: RunResults, name: str) -> None:
    """Check a task of ``--predict_only``, whose captions are in the sample log."""
    n_captions = n_empty = 0
    for sample in run.samples(name):
        n_captions += 1
        n_empty += not str(sample.get("filtered_resps", "")).strip("[]'\" \n")
    if n_captions == n_empty:
        report.problem(
            f"{name}: no caption was written; see the captioner's messages in the run's log, "
            "then run it again"
        )
        return
    empty = f", {n_empty} of them empty," if n_empty else ""
    report.ok(
        name,
        f"{_counted(n_captions, 'caption', 'captions')}{empty} written, nothing was judged "
        f"(--predict_only); judge with --model caption_file --model_args path={run.path.parent}",
    )


def _shown_scores(task: TaskResults) -> str:
    """Return each score with its 95% interval, the headline first."""
    headline = task.judging.get("headline")
    scores = sorted(task.measured.items(), key=lambda score: score[0] != headline)
    return ", ".join(f"{metric} {measured}" for metric, measured in scores if metric != "unscored")


def _notes(task: TaskResults) -> Iterator[str]:
    """Notes on the intervals and on the deviation between judge runs."""
    headline = task.measured.get(str(task.judging.get("headline")))
    if headline is not None and headline.deviation is not None:
        yield f"judge runs: {headline.judge_words}"
    by_note: dict[str, list[str]] = {}
    for metric, measured in task.measured.items():
        if measured.note:
            by_note.setdefault(measured.note, []).append(metric)
    for note, metrics in by_note.items():
        yield f"{note}: {', '.join(metrics)}"


def _shown_difference(task: TaskResults) -> str:
    """Return the difference to ``--baseline``; empty if nothing was compared."""
    found, headline = task.paired, str(task.judging.get("headline"))
    numbers = [found.get(name) for name in ("baseline_score", "ci_lower", "ci_upper", "pvalue")]
    value = task.scores.get(headline)
    if value is None or not all(isinstance(number, int | float) for number in numbers):
        return ""
    before, low, high, p_value = (float(str(number)) for number in numbers)
    return (
        f"difference to {found.get('baseline')}: {value - before:+.2f} [{low:+.2f}, {high:+.2f}], "
        f"P {p_value:.4f}"
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


def _since(
    folder: Path, models: Sequence[Sequence[RunResults]], since_s: float
) -> list[list[RunResults]]:
    """Return the runs that ended since then, by model.

    Raises:
        DataError: If there is none.
    """
    newest = max(run.finished_s for runs in models for run in runs)
    recent = [[run for run in runs if run.finished_s >= since_s] for runs in models]
    if not any(recent):
        raise DataError(
            f"{folder}: no run ended since {_moment(since_s)}, the newest ended "
            f"{_moment(newest)}: the last run wrote no results, see the end of its log"
        )
    return [runs for runs in recent if runs]


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"


def _counted(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
