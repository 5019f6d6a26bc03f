"""Files of finished runs: results, judging documents, sample logs and breakdowns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import isfinite, nan
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import numbered_lines, parse_json, read_whole
from lmms_eval_captions.lmms_eval_tasks.intervals import CI_HIGH, CI_LOW, Measured
from lmms_eval_captions.lmms_eval_tasks.signature import DOUBTS, OURS, RESULTS, Signature
from lmms_eval_captions.model_wrappers.caption_files.columns import listed
from lmms_eval_captions.model_wrappers.caption_files.paths import logs_of_run

_JUDGING: Final = "_judging.json"
_PAIRED: Final = "paired_"
"""Prefix of the results of lmms-eval's ``--baseline``, which are not metrics."""
_ENDS: Final = (f"_{CI_LOW}", f"_{CI_HIGH}")
"""Suffixes of the ends of intervals, which are not metrics."""
_PREDICTED: Final = "bypass"
"""Only metric of a task whose captions were written and not judged."""


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
        numbers = {}
        for name, figures in _tables(judging, "metrics"):
            value = figures.get("value")
            numbers[f"{name},none"] = nan if value is None else value
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
            and not name.startswith(_PAIRED)
            and not (metric := name.partition(",")[0]).endswith(_ENDS)
        }

    @property
    def measured(self) -> dict[str, Measured]:
        """Each finite score with its interval: the judging document's, else the results file's."""
        of_judging = dict(_tables(self.judging, "metrics"))
        return {
            name: replace(Measured.read(of_judging.get(name) or self._ends(name)), value=value)
            for name, value in self.scores.items()
            if isfinite(value)
        }

    @property
    def paired(self) -> dict[str, object]:
        """Results of ``--baseline`` by lmms-eval's names without their prefix."""
        return {
            name.removeprefix(_PAIRED): value
            for name, value in self.metrics.items()
            if name.startswith(_PAIRED)
        }

    @property
    def unscored_reasons(self) -> dict[str, int]:
        """Reason to the number of unscored questions; empty if not known."""
        unscored = self.judging.get("unscored")
        reasons = unscored.get("reasons") if isinstance(unscored, dict) else None
        if not isinstance(reasons, dict):
            return {}
        return {str(reason): n for reason, n in reasons.items() if isinstance(n, int)}

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

    def _ends(self, metric: str) -> dict[str, object]:
        return {end: self.metrics.get(f"{metric}_{end},none") for end in (CI_LOW, CI_HIGH)}


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
    def finished_s(self) -> float:
        """End of the run in seconds since the epoch: the judging document's, else the file's.

        The date in its name is in the time zone that lmms-eval was given.
        """
        try:
            return datetime.fromisoformat(str(self.judging.get("finished"))).timestamp()
        except ValueError:
            return self.path.stat().st_mtime

    @property
    def warnings(self) -> list[str]:
        """Warnings of the judging document."""
        warnings = self.judging.get("warnings")
        return list(map(str, warnings)) if isinstance(warnings, list) else []

    def has_samples(self, task: str) -> bool:
        """Return True if the run has a sample log of a task."""
        return task in logs_of_run(self.path.parent, self.path.name.removesuffix(RESULTS))

    def samples(self, task: str) -> Iterator[dict[str, object]]:
        """Yield the logged samples of a task, in the log's order.

        Raises:
            DataError: If there is no sample log of the task, or it cannot be read to its end.
        """
        logs = logs_of_run(self.path.parent, self.path.name.removesuffix(RESULTS))
        if task not in logs:
            raise DataError(
                f"{self.path}: expected this run's sample log of task {task!r} next to it, found "
                f"those of {listed(logs, 30) or 'no task'}; run lmms-eval with --log_samples"
            )
        return _samples(logs[task])

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
        breakdown = _read_json(path, "a breakdown of lmms-eval-captions")
        if not isinstance(breakdown, dict):
            raise DataError(
                f"{path}: expected a breakdown of lmms-eval-captions, got {breakdown!r:.80}"
            )
        return breakdown


def read_results(folder: Path) -> list[RunResults]:
    """Read the newest results of every model below a folder, or one results file.

    Args:
        folder: lmms-eval's ``--output_path``, or one results file.

    Raises:
        DataError: If there is no results file, or one cannot be read.
    """
    newest = {path.parent: path for path in _paths(folder)}
    return [_read_run(path) for path in newest.values()]


def read_all_results(folder: Path) -> list[list[RunResults]]:
    """Read all results of every model below a folder, those of a model from oldest to newest.

    Args:
        folder: See :func:`read_results`.

    Raises:
        DataError: If there is no results file, or one cannot be read.
    """
    runs: dict[Path, list[RunResults]] = {}
    for path in _paths(folder):
        runs.setdefault(path.parent, []).append(_read_run(path))
    for of_model in runs.values():
        # Names begin with a local time, and files lose their own time when copied.
        if all(run.judging for run in of_model):
            of_model.sort(key=lambda run: run.finished_s)
    return list(runs.values())


def _paths(folder: Path) -> list[Path]:
    """Return the results files below a folder, sorted by name, or the one file that is given."""
    if folder.is_file():
        return [folder]
    paths = sorted(folder.rglob(f"*{RESULTS}"), key=lambda path: (path.parent, path.name))
    if not paths:
        what = "no *_results.json here or below" if folder.is_dir() else "there is no such folder"
        raise DataError(
            f"{folder}: {what}; give the folder that lmms-eval had as --output_path. A run that "
            "ended early writes none: look at the end of its log"
        )
    return paths


def _read_run(path: Path) -> RunResults:
    document = _read_json(path, "a results file of lmms-eval")
    tasks = document.get("results") if isinstance(document, dict) else None
    if (
        not isinstance(document, dict)
        or not isinstance(tasks, dict)
        or not all(isinstance(metrics, dict) for metrics in tasks.values())
    ):
        raise DataError(
            f"{path}: expected a results file of lmms-eval, with each task's metrics under "
            f"'results', got {document!r:.80}"
        )
    if not _are_groups(document.get("group_subtasks", {})):
        raise DataError(
            f"{path}: expected each group's tasks under 'group_subtasks', got "
            f"{document['group_subtasks']!r:.80}"
        )
    judging_path = path.with_name(path.name.removesuffix(RESULTS) + _JUDGING)
    judging = _read_json(judging_path, "a judging document") if judging_path.is_file() else {}
    if not isinstance(judging, dict):
        raise DataError(f"{judging_path}: expected a judging document, got {judging!r:.80}")
    ours, judged = dict(_tables(document.get(OURS), "tasks")), dict(_tables(judging, "tasks"))
    named = {
        name: TaskResults(metrics, ours.get(name, {}), judged.get(name, {}))
        for name, metrics in tasks.items()
    }
    return RunResults(path, document, named, judging)


def _are_groups(members: object) -> bool:
    """Return True for an object of lists of names; a group may have none."""
    return isinstance(members, dict) and all(
        names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names))
        for names in members.values()
    )


def _tables(document: object, key: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the members of an object under a key that are objects themselves."""
    members = document.get(key) if isinstance(document, Mapping) else None
    for name, table in members.items() if isinstance(members, dict) else ():
        if isinstance(table, dict):
            yield name, table


def _read_json(path: Path, what: str) -> object:
    try:
        return parse_json(read_whole(path))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: expected {what}: {error}; is it cut off? Run again, and delete it"
        ) from error


def _samples(path: Path) -> Iterator[dict[str, object]]:
    try:
        for number, line in numbered_lines(path):
            sample = parse_json(line)
            if not isinstance(sample, dict):
                raise DataError(f"{path}, line {number}: expected a sample, got {sample!r:.80}")
            yield sample
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: expected a sample log of lmms-eval, one JSON object per line: {error}; is it "
            "cut off? Run the task again with --log_samples"
        ) from error
