"""Looks through results for scores that must not be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import isnan
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.reasons import help_against
from lmms_eval_captions.lmms_eval_tasks.results_folder import (
    RunResults,
    TaskResults,
    read_all_results,
)
from lmms_eval_captions.lmms_eval_tasks.sentence import sentence

_WIDTH: Final = 9
"""Columns of the word that a line begins with."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What is still fine."""

    max_unscored: float
    """Largest share of unscored questions, in [0, 1]."""
    accept_doubts: bool = False
    """Whether a judge of which there is doubt is fine."""


@dataclass(slots=True)
class Report:
    """What was found, a line each."""

    lines: list[str] = field(default_factory=list)
    """Everything, in the order in which it is read."""
    told: list[str] = field(default_factory=list)
    """Those of them that tell of a problem, or warn."""
    paths: list[Path] = field(default_factory=list)
    """Files that were checked."""
    fine: list[str] = field(default_factory=list)
    """Tasks and groups without a problem."""
    problems: list[str] = field(default_factory=list)
    """``<task>: <problem>``; ends with what helps where that is known."""

    def file(self, path: Path) -> None:
        """Begin what is said of one file."""
        self.paths.append(path)
        self.lines.append(str(path))

    def ok(self, name: str, text: str) -> None:
        """Note a task that is fine."""
        self.fine.append(name)
        self._add("ok", f"{name}: {text}")

    def problem(self, text: str) -> None:
        """Note what must not be trusted."""
        self.problems.append(text)
        self._add("problem", text)

    def warning(self, text: str) -> None:
        """Note what a reader must know, and which is no problem."""
        self._add("warning", text)

    def detail(self, text: str) -> None:
        """Add to the line before."""
        self._add("", text)

    def last_line(self, command: str) -> str:
        """All of it in one sentence behind the command's name."""
        if not self.problems:
            checked = _counted(len(self.fine), "task or group", "tasks and groups")
            where = f" in {self.paths[-1]}" if self.paths else ""
            others = len(self.paths) - 1
            behind = f" and {_counted(others, 'other file', 'other files')}" if others > 0 else ""
            return f"{command}: ok: {checked} checked{where}{behind}"
        more = len(self.problems) - 1
        behind = f" ({_counted(more, 'more problem', 'more problems')} above)" if more else ""
        return sentence(f"{command}: problem{behind}: {self.problems[0]}")

    def _add(self, kind: str, text: str) -> None:
        line = f"  {kind:<{_WIDTH}}{text}"
        self.lines.append(line)
        if kind in ("problem", "warning"):
            self.told.append(line)


def check_folder(folder: Path, limits: Limits, *, since_s: float | None = None) -> Report:
    """Check the newest results of every task of every model below a folder.

    Args:
        folder: What was given to lmms-eval as ``--output_path``; also one results file.
        limits: What is still fine.
        since_s: Runs that ended before, in seconds since the epoch, do not count.

    Raises:
        DataError: If there is no results file, none of a run since then, or one cannot be read.
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
    """Check one run.

    Args:
        report: Where what is found is added.
        run: The run.
        limits: What is still fine.
        names: Its tasks and groups that count, by default all.
    """
    report.file(run.path)
    tasks = {name: run.tasks[name] for name in (run.tasks if names is None else names)}
    if not any(_is_ours(task) for task in tasks.values()):
        report.problem(
            f"{run.path} holds no task of lmms-eval-captions: name one with --tasks, such as "
            "--tasks vdc_score"
        )
    for name, task in tasks.items():
        if task.is_prediction:
            _check_predictions(report, run, name)
        else:
            check_task(report, name, task, limits)
    tell_warnings(report, run.judging)


def tell_warnings(report: Report, judging: Mapping[str, object]) -> None:
    """Add what a judging document warns of."""
    warnings = judging.get("warnings")
    for warning in warnings if isinstance(warnings, list) else ():
        report.warning(str(warning))


def check_task(report: Report, name: str, task: TaskResults, limits: Limits) -> None:
    """Check one task or group; one that is not of this package is passed over."""
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
    """Check a task of ``--predict_only``: lmms-eval saves its captions in the sample log."""
    n_captions = n_empty = 0
    for sample in run.samples(name):
        n_captions += 1
        n_empty += not str(sample.get("filtered_resps", "")).strip("[]'\" \n")
    if n_captions == n_empty:
        report.problem(
            f"{name}: no caption was written; look for what the captioner said in the run's log, "
            "and run it again"
        )
        return
    empty = f", {n_empty} of them empty," if n_empty else ""
    report.ok(
        name,
        f"{_counted(n_captions, 'caption', 'captions')}{empty} written, nothing was judged "
        f"(--predict_only); judge with --model caption_file --model_args path={run.path.parent}",
    )


def _shown_scores(task: TaskResults) -> str:
    """Each score, the headline first, with its 95% interval, in its unit, where that is known."""
    headline = task.judging.get("headline")
    scores = sorted(task.measured.items(), key=lambda score: score[0] != headline)
    return ", ".join(f"{metric} {measured}" for metric, measured in scores if metric != "unscored")


def _notes(task: TaskResults) -> Iterator[str]:
    """What must be known of the intervals, and what several judge runs tell of the judge."""
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
    """What ``--baseline`` found; empty where nothing was compared."""
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


def _is_ours(task: TaskResults) -> bool:
    return task.signature is not None or task.is_prediction


def _newest(runs: Sequence[RunResults]) -> Iterator[tuple[RunResults, list[str]]]:
    """The runs of one model, each with its tasks that no later run has, where it has any.

    Captions that were not judged stand in for no score, and a score stands for them.
    """
    last: dict[str, RunResults] = {}
    for run in runs:
        for name, task in run.tasks.items():
            if not (task.is_prediction and name in last):
                last[name] = run
    for run in runs:
        names = [name for name in run.tasks if last[name] is run]
        # Of a run without any task the report says so.
        if names or not run.tasks:
            yield run, names


def _since(
    folder: Path, models: Sequence[Sequence[RunResults]], since_s: float
) -> list[list[RunResults]]:
    """The runs that ended since then, by model.

    Raises:
        DataError: If there is none.
    """
    newest = max(run.finished_s for runs in models for run in runs)
    recent = [[run for run in runs if run.finished_s >= since_s] for runs in models]
    if not any(recent):
        raise DataError(
            f"{folder}: no run here ended since {_moment(since_s)}, the newest ended "
            f"{_moment(newest)}: the run that you mean wrote no results, look at the end of its log"
        )
    return [runs for runs in recent if runs]


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"


def _counted(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
