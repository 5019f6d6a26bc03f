"""Check of finished runs: scores that must not be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from math import isnan
from pathlib import Path

from lmms_eval_captions.analysis.results_folder import (
    RunResults,
    TaskResults,
    read_all_results,
    warnings_in,
)
from lmms_eval_captions.analysis.tables import plural
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.sentence import sentence
from lmms_eval_captions.lmms_eval_tasks.signature import Signature


@dataclass(slots=True)
class Check:
    """Lines about finished runs; scores that must not be trusted are problems."""

    max_unscored: float
    """Largest share of unscored questions that passes, in [0, 1]."""
    accept_doubts: bool = False
    """True if a suspicious judge is a warning, not a problem."""
    entries: list[tuple[str, str]] = field(default_factory=list)
    """Kind and text of each line: ``file``, ``ok``, ``problem`` (``<task>: <problem>``, with advice
    if there is any), ``warning``, or empty for more on the line before."""

    def add(self, kind: str, *texts: str) -> None:
        """Add lines of a kind."""
        self.entries += [(kind, text) for text in texts]

    def lines(self, kinds: Sequence[str] = ()) -> list[str]:
        """Return the lines of some kinds, by default all."""
        entries = [entry for entry in self.entries if not kinds or entry[0] in kinds]
        return [text if kind == "file" else f"  {kind:<9}{text}" for kind, text in entries]

    def texts(self, kind: str) -> list[str]:
        """Return the texts of a kind."""
        return [text for of, text in self.entries if of == kind]

    def last_line(self, command: str) -> str:
        """Return a sentence that sums up the check, after the command's name."""
        problems, paths, n = self.texts("problem"), self.texts("file"), len(self.texts("ok"))
        if problems:
            more = len(problems) - 1
            others = f" ({plural(more, 'more problem')} above)" if more else ""
            return sentence(f"{command}: problem{others}: {problems[0]}")
        checked = f"{n:,} {'task or group' if n == 1 else 'tasks and groups'} checked"
        where = f" in {paths[-1]}" if paths else ""
        others = f" and {plural(len(paths) - 1, 'other file')}" if len(paths) > 1 else ""
        return f"{command}: ok: {checked}{where}{others}"

    def folder(self, folder: Path, since_s: float | None = None) -> None:
        """Check the newest results of every task of every model below lmms-eval's output folder.

        Args:
            folder: Also one results file.
            since_s: Time in seconds since the epoch; runs that ended before are left out.

        Raises:
            DataError: If there is no results file, none since then, or one cannot be read.
        """
        models = read_all_results(folder)
        if since_s is not None:
            newest = max(run.finished_s for runs in models for run in runs)
            if newest < since_s:
                raise DataError(
                    f"{folder}: no run ended since {_moment(since_s)}, the newest ended "
                    f"{_moment(newest)}: the last run wrote no results, see the end of its log"
                )
            models = [[run for run in runs if run.finished_s >= since_s] for runs in models]
        for run, names in chain.from_iterable(map(_newest, models)):
            self.add("file", str(run.path))
            tasks = [run.tasks[name] for name in names]
            if not any(task.signature is not None or task.is_prediction for task in tasks):
                self.add(
                    "problem",
                    f"{run.path} holds no task of lmms-eval-captions: name one with --tasks, such "
                    "as --tasks vdc_score",
                )
            for name, task in zip(names, tasks, strict=True):
                if task.is_prediction:
                    self.add(*_prediction(run, name))
                else:
                    self.task(name, task)
            self.add("warning", *warnings_in(run.judging))

    def task(self, name: str, task: TaskResults) -> None:
        """Check one task or group; those of other packages are skipped."""
        signature = task.signature
        if signature is None:
            return
        problems = list(self._problems(task, signature))
        self.add("problem", *(f"{name}: {problem}" for problem in problems))
        measured, headline = task.measured, str(task.judging.get("headline"))
        if not problems:
            scores = sorted(measured.items(), key=lambda score: score[0] != headline)
            shown = ", ".join(f"{metric} {of}" for metric, of in scores if metric != "unscored")
            self.add("ok", f"{name}: {shown or 'no number'}")
        if self.accept_doubts:
            self.add("warning", *(f"{name}: {doubt}" for doubt in task.doubts))
        if headline in measured and measured[headline].deviation is not None:
            self.add("", f"judge runs: {measured[headline].judge_words}")
        for note in dict.fromkeys(of.note for of in measured.values() if of.note):
            self.add("", f"{note}: {', '.join(m for m, of in measured.items() if of.note == note)}")
        self.add("", str(signature))

    def _problems(self, task: TaskResults, signature: Signature) -> Iterator[str]:
        unscored, too_many = signature.unscored, ""
        if unscored and unscored.exceeds(self.max_unscored):
            share = f" ({unscored.n / unscored.of:.2%})" if unscored.of else ""
            too_many = f"{unscored.n} of {unscored.of} questions are unscored{share}: {task.help}"
        # A metric that its signature says is unavailable (no tokenizer) is nan for that reason.
        scores = task.scores.items()
        missing = [m for m, value in scores if isnan(value) and m not in signature.unavailable]
        if missing:
            are = "is" if len(missing) == 1 else "are"
            yield f"{', '.join(missing)} {are} nan: {too_many or task.help}"
        elif too_many:
            yield too_many
        if not self.accept_doubts:
            yield from task.doubts


def _prediction(run: RunResults, name: str) -> tuple[str, str]:
    """Return the line about a task of ``--predict_only``, whose captions are in the sample log."""
    captions = [str(sample.get("filtered_resps", "")) for sample in run.samples(name)]
    n_empty = sum(not caption.strip("[]'\" \n") for caption in captions)
    if len(captions) == n_empty:
        return "problem", (
            f"{name}: no caption was written; see the captioner's messages in the run's log, "
            "then run it again"
        )
    empty = f", {n_empty} of them empty," if n_empty else ""
    return "ok", (
        f"{name}: {plural(len(captions), 'caption')}{empty} written, nothing was judged "
        f"(--predict_only); judge with --model caption_file --model_args path={run.path.parent}"
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
