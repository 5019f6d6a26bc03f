"""What lmms-eval and our tasks wrote of a run: results, sample logs and breakdowns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import isfinite, nan
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import numbered_lines, parse_json, read_whole
from lmms_eval_captions.lmms_eval_tasks.measured import CI_HIGH, CI_LOW, Measured
from lmms_eval_captions.lmms_eval_tasks.signature import DOUBTS, Signature
from lmms_eval_captions.model_wrappers.caption_files.columns import listed
from lmms_eval_captions.model_wrappers.caption_files.paths import logs_of_run

OURS: Final = "lmms_eval_captions"
"""Key of a results file under which this package's own words stand."""
RESULTS: Final = "_results.json"
_JUDGING: Final = "_judging.json"
_PAIRED: Final = "paired_"
"""How the names begin of what lmms-eval's ``--baseline`` found, which is no metric."""
_ENDS: Final = (f"_{CI_LOW}", f"_{CI_HIGH}")
"""How the names end of the ends of intervals, which are no metrics."""
_PREDICTED: Final = "bypass"
"""The one metric that lmms-eval gives a task whose captions were written and not judged."""


@dataclass(frozen=True, slots=True)
class TaskResults:
    """What a run found out about one task or group."""

    metrics: Mapping[str, object]
    """Value of each ``<metric>,<filter>`` and ``<metric>_stderr,<filter>``, as in the file."""
    ours: Mapping[str, object] = field(default_factory=dict)
    """What this package wrote of it beside the metrics: ``signature`` and ``breakdown``."""
    judging: Mapping[str, object] = field(default_factory=dict)
    """Its part of the run's judging document, empty where there is none."""

    @classmethod
    def of_judging(cls, judging: Mapping[str, object]) -> TaskResults:
        """A task by its part of a judging document alone: the run saved no results."""
        values = {name: figures.get("value") for name, figures in _tables(judging, "metrics")}
        numbers = {
            f"{name},none": nan if value is None else value for name, value in values.items()
        }
        return cls(numbers, judging, judging)

    @property
    def signature(self) -> Signature | None:
        """What moved the scores; ``None`` where the task is not one of this package."""
        text = self._own("signature")
        return None if text is None else Signature.parse(text)

    @property
    def breakdown(self) -> str | None:
        """Where the breakdown is, or why there is none; ``None`` where nothing is said of it."""
        return self._own("breakdown")

    @property
    def scores(self) -> dict[str, float]:
        """Value of each metric that is a number, without standard errors and intervals."""
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
        """Each score with how sure it is, ``nan`` scores left out.

        By the judging document; a results file that was copied by itself has the intervals alone.
        """
        of_judging = dict(_tables(self.judging, "metrics"))
        return {
            name: replace(Measured.read(of_judging.get(name) or self._ends(name)), value=value)
            for name, value in self.scores.items()
            if isfinite(value)
        }

    @property
    def paired(self) -> dict[str, object]:
        """What ``--baseline`` found, by lmms-eval's names without their beginning."""
        return {
            name.removeprefix(_PAIRED): value
            for name, value in self.metrics.items()
            if name.startswith(_PAIRED)
        }

    @property
    def unscored_reasons(self) -> dict[str, int]:
        """Why questions are unscored: each reason to their number; empty where that is not said."""
        unscored = self.judging.get("unscored")
        reasons = unscored.get("reasons") if isinstance(unscored, dict) else None
        if not isinstance(reasons, dict):
            return {}
        return {str(reason): n for reason, n in reasons.items() if isinstance(n, int)}

    @property
    def doubts(self) -> list[str]:
        """Why the judge may not have judged, a sentence each.

        A group has but its tasks' names for it, and so has a results file by itself: those that
        stand in the signature.
        """
        doubts = self.judging.get("doubts")
        if isinstance(doubts, list) and doubts:
            return list(map(str, doubts))
        named = self.signature.fields.get(DOUBTS) if self.signature else None
        return [f"there is doubt about the judge ({named}): do not use this number"] * bool(named)

    @property
    def is_prediction(self) -> bool:
        """Whether captions were written and nothing was scored (``--predict_only``)."""
        return any(name.partition(",")[0] == _PREDICTED for name in self.metrics)

    def _ends(self, metric: str) -> dict[str, object]:
        """The interval of a metric, as the results file has it."""
        return {end: self.metrics.get(f"{metric}_{end},none") for end in (CI_LOW, CI_HIGH)}

    def _own(self, name: str) -> str | None:
        """One of our words: under our key, or, of an older version, among the metrics."""
        value = self.ours.get(name)
        if value is None:
            metrics = self.metrics.items()
            value = next((text for key, text in metrics if key.startswith(f"{name},")), None)
        return None if value is None else str(value)


@dataclass(frozen=True, slots=True)
class RunResults:
    """The results file of a run, and where the run's other files are."""

    path: Path
    document: Mapping[str, object]
    """The whole file."""
    tasks: Mapping[str, TaskResults]
    """Each task and group, also other people's."""
    judging: Mapping[str, object] = field(default_factory=dict)
    """The run's judging document, empty where none was written."""

    @property
    def finished_s(self) -> float:
        """When the run ended, in seconds since the epoch.

        By the judging document; without, by the file's own time. The date in its name is in
        whatever time zone lmms-eval was given.
        """
        try:
            return datetime.fromisoformat(str(self.judging.get("finished"))).timestamp()
        except ValueError:
            return self.path.stat().st_mtime

    @property
    def warnings(self) -> list[str]:
        """What the run's judging document warns of."""
        warnings = self.judging.get("warnings")
        return list(map(str, warnings)) if isinstance(warnings, list) else []

    def has_samples(self, task: str) -> bool:
        """Whether the run has a sample log of a task."""
        return task in logs_of_run(self.path.parent, self.path.name.removesuffix(RESULTS))

    def samples(self, task: str) -> Iterator[dict[str, object]]:
        """What lmms-eval logged of each document of a task, in the log's order.

        Raises:
            DataError: If the run has no sample log of the task, or it cannot be read to its end.
        """
        logs = logs_of_run(self.path.parent, self.path.name.removesuffix(RESULTS))
        if task not in logs:
            raise DataError(
                f"{self.path}: expected this run's sample log of task {task!r} beside it, found "
                f"those of {listed(logs, 30) or 'no task'}; run lmms-eval with --log_samples"
            )
        return _samples(logs[task])

    def breakdown(self, task: str) -> dict[str, object] | None:
        """The breakdown of a task or group, ``None`` where the run wrote none.

        Raises:
            DataError: If the file that the results name is not there or cannot be read.
        """
        name = Path(str(self.tasks[task].breakdown)).name
        if not name.endswith(".json"):
            return None
        # It is beside the results; older versions wrote it into the folder given to lmms-eval,
        # which is the one above. That folder may have been moved since.
        paths = (folder / name for folder in (self.path.parent, self.path.parent.parent))
        path = next(filter(Path.is_file, paths), None)
        if path is None:
            raise DataError(
                f"{self.path}: expected the breakdown {name!r} beside it or in the folder above; "
                "copy the whole folder that lmms-eval had as --output_path"
            )
        breakdown = _read_json(path, "a breakdown of lmms-eval-captions")
        if not isinstance(breakdown, dict):
            raise DataError(
                f"{path}: expected a breakdown of lmms-eval-captions, got {breakdown!r:.80}"
            )
        return breakdown


def read_results(folder: Path) -> list[RunResults]:
    """The newest results of every model below a folder, or those of one results file.

    Args:
        folder: What was given to lmms-eval as ``--output_path``; also one results file.

    Raises:
        DataError: If there is no results file, or one cannot be read.
    """
    newest = {path.parent: path for path in _paths(folder)}
    return [_read_run(path) for path in newest.values()]


def read_all_results(folder: Path) -> list[list[RunResults]]:
    """All results of every model below a folder, those of one model from the oldest to the newest.

    Args:
        folder: As for :func:`read_results`.

    Raises:
        DataError: If there is no results file, or one cannot be read.
    """
    runs: dict[Path, list[RunResults]] = {}
    for path in _paths(folder):
        runs.setdefault(path.parent, []).append(_read_run(path))
    for of_model in runs.values():
        # Names begin with the time of the run, in a time zone that may differ from run to run.
        # The files' own times are lost when a folder is copied: they say nothing of the order.
        if all(run.judging for run in of_model):
            of_model.sort(key=lambda run: run.finished_s)
    return list(runs.values())


def _paths(folder: Path) -> list[Path]:
    """The results files below a folder, sorted by their names, or the one file that is given.

    Raises:
        DataError: If there is none.
    """
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
    judging = _read_json(judging_path, "what was judged") if judging_path.is_file() else {}
    if not isinstance(judging, dict):
        raise DataError(f"{judging_path}: expected what was judged, got {judging!r:.80}")
    ours, judged = dict(_tables(document.get(OURS), "tasks")), dict(_tables(judging, "tasks"))
    named = {
        name: TaskResults(metrics, ours.get(name, {}), judged.get(name, {}))
        for name, metrics in tasks.items()
    }
    return RunResults(path, document, named, judging)


def _are_groups(members: object) -> bool:
    """Whether these are names with the names below each."""
    if not isinstance(members, dict):
        return False
    names: Iterable[object] = (name for listed in members.values() for name in listed or ())
    are_lists = all(listed is None or isinstance(listed, list) for listed in members.values())
    return are_lists and all(isinstance(name, str) for name in names)


def _tables(document: object, key: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The members of an object under a key that are objects themselves."""
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
