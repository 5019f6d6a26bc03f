"""What lmms-eval and our tasks wrote of a run: results, sample logs and breakdowns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files.bounded_files import numbered_lines, parse_json, read_whole
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.model_wrappers.caption_files.columns import listed
from lmms_eval_captions.model_wrappers.caption_files.sample_logs import logs_of_run

_RESULTS: Final = "_results.json"


@dataclass(frozen=True, slots=True)
class TaskResults:
    """What lmms-eval printed of one task or group."""

    metrics: Mapping[str, object]
    """Value of each ``<metric>,<filter>`` and ``<metric>_stderr,<filter>``, as in the file."""

    @property
    def signature(self) -> Signature | None:
        """What moved the scores; ``None`` where the task is not one of this package."""
        return next(
            (
                Signature.parse(str(value))
                for name, value in self.metrics.items()
                if name.startswith("signature,")
            ),
            None,
        )

    @property
    def scores(self) -> dict[str, float]:
        """Value of each metric that is a number, standard errors left out."""
        return {
            name.partition(",")[0]: float(value)
            for name, value in self.metrics.items()
            if isinstance(value, int | float) and "_stderr" not in name
        }


@dataclass(frozen=True, slots=True)
class RunResults:
    """The results file of a run, and where the run's other files are."""

    path: Path
    document: Mapping[str, object]
    """The whole file."""
    tasks: Mapping[str, TaskResults]
    """Each task and group, also other people's."""

    def samples(self, task: str) -> Iterator[dict[str, object]]:
        """What lmms-eval logged of each document of a task, in the log's order.

        Raises:
            DataError: If the run has no sample log of the task, or it cannot be read to its end.
        """
        logs = logs_of_run(self.path.parent, self.path.name.removesuffix(_RESULTS))
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
        name = Path(str(self.tasks[task].metrics.get("breakdown,none"))).name
        if not name.endswith(".json"):
            return None
        # It is in the folder given to lmms-eval, the results in one of the model's own below it.
        # That folder may have been moved since.
        paths = (folder / name for folder in (self.path.parent.parent, self.path.parent))
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
    paths = [folder] if folder.is_file() else _newest(folder)
    if not paths:
        raise DataError(
            f"{folder}: no *_results.json here or below; give the folder that lmms-eval had as "
            "--output_path. A run that ended early writes none: look at the end of its log"
        )
    return [_read_run(path) for path in paths]


def _newest(folder: Path) -> list[Path]:
    # Names begin with the time of the run.
    newest = {path.parent: path for path in sorted(folder.rglob(f"*{_RESULTS}"))}
    return list(newest.values())


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
    named = {name: TaskResults(metrics) for name, metrics in tasks.items()}
    return RunResults(path, document, named)


def _read_json(path: Path, what: str) -> object:
    try:
        return parse_json(read_whole(path))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: expected {what}: {error}") from error


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
