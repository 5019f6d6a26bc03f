"""Files of finished runs: results, judging documents, sample logs and breakdowns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import isfinite, nan
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import json_lines, parse_json, read_whole
from lmms_eval_captions.lmms_eval_tasks.judging.reasons import help_against
from lmms_eval_captions.lmms_eval_tasks.records import KINDS
from lmms_eval_captions.lmms_eval_tasks.results import verdict_file
from lmms_eval_captions.lmms_eval_tasks.results.intervals import CI_HIGH, CI_LOW, Measured
from lmms_eval_captions.lmms_eval_tasks.signature import DOUBTS, OURS, RESULTS, Signature
from lmms_eval_captions.model_wrappers.caption_files.columns import listed
from lmms_eval_captions.model_wrappers.caption_files.paths import logs_of_run

_PAIRED: Final = "paired_"
"""Prefix of the results of lmms-eval's ``--baseline``, which are not metrics."""
_PREDICTED: Final = "bypass"
"""Only metric of a task whose captions were written and not judged."""


def member(document: object, *names: str) -> Any:  # noqa: ANN401 - of JSON's types
    """Return a member of nested objects, ``None`` if it or an object around it is missing."""
    for name in names:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document


@dataclass(frozen=True, slots=True)
class TaskResults:
    """Results of one task or group."""

    metrics: Mapping[str, object]
    """Value of each ``<metric>,<filter>`` and ``<metric>_stderr,<filter>``, as in the file."""
    ours: Mapping[str, object] = field(default_factory=dict)
    """Our entry in the file: ``signature`` and ``breakdown``."""
    judging: Mapping[str, object] = field(default_factory=dict)
    """Entry in the run's judging document, empty without one."""

    @classmethod
    def of_judging(cls, judging: Mapping[str, object]) -> TaskResults:
        """Return a task's results by its judging entry only: the run saved no results."""
        values = {name: of.get("value") for name, of in _members(judging, "metrics").items()}
        numbers = {f"{name},none": nan if v is None else v for name, v in values.items()}
        return cls(numbers, judging, judging)

    @property
    def signature(self) -> Signature | None:
        """Signature of the scores; ``None`` for a task of another package."""
        text = self.ours.get("signature")
        return None if text is None else Signature.parse(str(text))

    @property
    def scores(self) -> dict[str, float]:
        """Value of each numeric metric, without standard errors and intervals."""
        return {
            metric: float(value)
            for name, value in self.metrics.items()
            if isinstance(value, int | float)
            and "_stderr" not in name
            and not (metric := name.partition(",")[0]).startswith(_PAIRED)
            and not metric.endswith((f"_{CI_LOW}", f"_{CI_HIGH}"))
        }

    @property
    def measured(self) -> dict[str, Measured]:
        """Each finite score with its interval: the judging document's, else the results file's."""
        figures = _members(self.judging, "metrics")
        found = {}
        for name, value in self.scores.items():
            ends = {end: self.metrics.get(f"{name}_{end},none") for end in (CI_LOW, CI_HIGH)}
            if isfinite(value):
                found[name] = replace(Measured.read(figures.get(name) or ends), value=value)
        return found

    @property
    def unscored_reasons(self) -> dict[str, int]:
        """Reason to the number of unscored questions; empty if not known."""
        return _members(self.judging, "unscored", "reasons", kind=int)

    @property
    def help(self) -> str:
        """Most frequent reason for unscored questions, and what helps against it."""
        kinds = _members(self.judging, "unscored", "reasons_by_kind", kind=int)
        known = {kind: n for kind, n in kinds.items() if kind in KINDS}
        return help_against(self.unscored_reasons, known)

    @property
    def doubts(self) -> list[str]:
        """Doubts about the judge, a sentence each; without the sentences, by the signature."""
        doubts = self.judging.get("doubts")
        if isinstance(doubts, list) and doubts:
            return list(map(str, doubts))
        named = self.signature.fields.get(DOUBTS) if self.signature else None
        return [f"there is doubt about the judge ({named}): do not use this number"] * bool(named)

    @property
    def is_prediction(self) -> bool:
        """True if captions were written and nothing was scored (``--predict_only``)."""
        return any(name.partition(",")[0] == _PREDICTED for name in self.metrics)


@dataclass(frozen=True, slots=True)
class RunResults:
    """Results file of a run, with its other files."""

    path: Path
    document: Mapping[str, object]
    """Content of the file."""
    tasks: Mapping[str, TaskResults]
    """Each task and group, those of other packages included."""
    judging: Mapping[str, object] = field(default_factory=dict)
    """Judging document, empty without one."""

    @property
    def stamp(self) -> str:
        """Beginning of the names of the run's files."""
        return self.path.name.removesuffix(RESULTS)

    @property
    def finished_s(self) -> float:
        """End of the run in seconds since the epoch: the judging document's, else the file's.

        The date in its name is in the time zone that lmms-eval was given.
        """
        try:
            return datetime.fromisoformat(str(self.judging.get("finished"))).timestamp()
        except ValueError:
            return self.path.stat().st_mtime

    def verdict_path(self, task: str) -> Path:
        """Return the path of a task's verdicts."""
        return verdict_file.verdict_path(self.path.parent, self.stamp, task)

    def has_samples(self, task: str) -> bool:
        """Return True if the run has a sample log of a task."""
        return task in logs_of_run(self.path.parent, self.stamp)

    def samples(self, task: str) -> Iterator[dict[str, object]]:
        """Yield the logged samples of a task, in the log's order.

        Raises:
            DataError: If there is no sample log of the task, or it cannot be read to its end.
        """
        logs = logs_of_run(self.path.parent, self.stamp)
        if task not in logs:
            raise DataError(
                f"{self.path}: expected this run's sample log of task {task!r} next to it, found "
                f"those of {listed(logs, 30) or 'no task'}; run lmms-eval with --log_samples"
            )
        path = logs[task]
        try:
            for number, sample in json_lines(path):
                if not isinstance(sample, dict):
                    raise DataError(f"{path}, line {number}: expected a sample, got {sample!r:.80}")
                yield sample
        except (OSError, ValueError) as error:
            raise DataError(
                f"{path}: expected a sample log of lmms-eval, one JSON object per line: {error}; "
                "is it cut off? Run the task again with --log_samples"
            ) from error

    def breakdown(self, task: str) -> dict[str, object] | None:
        """Return the breakdown of a task or group, ``None`` if the run wrote none.

        Raises:
            DataError: If the file that the results name is missing or cannot be read.
        """
        name = Path(str(self.tasks[task].ours.get("breakdown"))).name
        if not name.endswith(".json"):
            return None
        path = self.path.with_name(name)
        if not path.is_file():
            raise DataError(
                f"{self.path}: expected the breakdown {name!r} next to it; copy the whole folder "
                "that lmms-eval had as --output_path"
            )
        return _read_object(path, "a breakdown of lmms-eval-captions")


def read_all_results(folder: Path) -> list[list[RunResults]]:
    """Read all results of every model below lmms-eval's output folder, or one file.

    Those of a model are from oldest to newest.

    Raises:
        DataError: If there is no results file, or one cannot be read.
    """
    paths = [folder] if folder.is_file() else list(folder.rglob(f"*{RESULTS}"))
    if not paths:
        what = "no *_results.json here or below" if folder.is_dir() else "there is no such folder"
        raise DataError(
            f"{folder}: {what}; give the folder that lmms-eval had as --output_path. A run that "
            "ended early writes none: look at the end of its log"
        )
    runs: dict[Path, list[RunResults]] = {}
    for path in sorted(paths, key=lambda path: (path.parent, path.name)):
        runs.setdefault(path.parent, []).append(_read_run(path))
    for of_model in runs.values():
        # Names begin with a local time, and files lose their own time when copied.
        if all(run.judging for run in of_model):
            of_model.sort(key=lambda run: run.finished_s)
    return list(runs.values())


def warnings_in(judging: Mapping[str, object]) -> list[str]:
    """Return the warnings of a judging document."""
    warnings = judging.get("warnings")
    return list(map(str, warnings)) if isinstance(warnings, list) else []


def _read_run(path: Path) -> RunResults:
    document = _read_object(path, "a results file of lmms-eval")
    tasks, groups = document.get("results"), document.get("group_subtasks", {})
    if not isinstance(tasks, dict) or not all(isinstance(of, dict) for of in tasks.values()):
        raise DataError(
            f"{path}: expected a results file of lmms-eval, with each task's metrics under "
            f"'results', got {document!r:.80}"
        )
    members = [of for of in groups.values() if of is not None] if isinstance(groups, dict) else [0]
    if not all(isinstance(of, list) and all(isinstance(n, str) for n in of) for of in members):
        raise DataError(
            f"{path}: expected each group's tasks under 'group_subtasks', got {groups!r:.80}"
        )
    judging_path = path.with_name(path.name.removesuffix(RESULTS) + "_judging.json")
    judging = _read_object(judging_path, "a judging document") if judging_path.is_file() else {}
    ours, judged = _members(document, OURS, "tasks"), _members(judging, "tasks")
    named = {
        name: TaskResults(metrics, ours.get(name, {}), judged.get(name, {}))
        for name, metrics in tasks.items()
    }
    return RunResults(path, document, named, judging)


def _members(document: object, *names: str, kind: type = dict) -> dict[Any, Any]:
    """Return the members of a nested object that are of a kind, none if it is missing."""
    found = member(document, *names)
    items = found.items() if isinstance(found, dict) else ()
    return {str(name): of for name, of in items if isinstance(of, kind)}


def _read_object(path: Path, what: str) -> dict[str, object]:
    try:
        document = parse_json(read_whole(path))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: expected {what}: {error}; is it cut off? Run again, and delete it"
        ) from error
    if not isinstance(document, dict):
        raise DataError(f"{path}: expected {what}, got {document!r:.80}")
    return document
