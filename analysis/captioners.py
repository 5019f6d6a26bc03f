"""Captioners by the results folders that a user names: one for each model below a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.analysis.results_folder import RunResults, TaskResults, read_all_results
from lmms_eval_captions.analysis.tables import shortened
from lmms_eval_captions.analysis.task_table import TaskTable, Verdicts, read_table
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.signature import RESULTS
from lmms_eval_captions.lmms_eval_tasks.task_names import leaves_of, our_benchmarks

if TYPE_CHECKING:
    import pandas as pd

_Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Captioner:
    """A captioner with its finished runs."""

    name: str
    """Short, and distinct from the names of the other captioners."""
    runs: Mapping[str, RunResults]
    """Newest run of each task and group of ours."""
    _tables: dict[tuple[Path, str], TaskTable] = field(default_factory=dict, repr=False)

    @property
    def tasks(self) -> list[str]:
        """Tasks with verdicts, without groups."""
        return [name for name in self.runs if name in our_benchmarks()]

    @property
    def newest(self) -> RunResults:
        """The newest of its runs."""
        return max(self.runs.values(), key=lambda run: run.finished_s)

    def results(self, name: str) -> TaskResults:
        """Return the numbers that a task or group was given."""
        return self.runs[name].tasks[name]

    def verdicts(self, name: str, *, sampled: bool = True) -> Verdicts:
        """Return the verdicts of a task or a group.

        Raises:
            DataError: If they cannot be read, or are on a sample of the questions, and ``sampled``
                is false.
        """
        run = self.runs[name]
        tasks = members_of(run, name)
        for task in tasks:
            if (run.path, task) not in self._tables:
                self._tables[run.path, task] = read_table(run.verdict_path(task), task)
        tables = tuple(self._tables[run.path, task] for task in tasks)
        for table in tables:
            if table.is_sampled and not sampled:
                raise DataError(
                    f"{run.path.name}: only a sample of the questions of {table.task} was judged, "
                    "and this needs all: score the captions again without LMMS_CAPTIONS_PRECISION"
                )
        return Verdicts(name, tables, tables[0].benchmark.pooled_group == name)


def members_of(run: RunResults, name: str) -> list[str]:
    """Return the tasks of ours behind a task or group of one benchmark; none for other names."""
    ours = our_benchmarks()
    tasks = leaves_of(run.document, name)
    is_ours = all(task in ours for task in tasks) and len({id(ours[task]) for task in tasks}) == 1
    return tasks if is_ours and not run.tasks[name].is_prediction else []


def captioners_of(folders: Sequence[Path]) -> list[Captioner]:
    """Return the captioners of results folders, in the order of the folders.

    Folders are lmms-eval's ``--output_path``, or results files; each model below one is a
    captioner, but all are one if no two have a task in common: its captions are in a file per task.
    It is called like its folder, with folders above it to tell captioners apart.

    Raises:
        DataError: If a folder has no results or none of our tasks, or is named twice.
    """
    found = [model for folder in folders for model in _models(folder)]
    seen: set[Path] = set()
    for parts, runs in found:
        paths = {run.path.resolve() for run in runs.values()}
        if paths & seen:
            raise DataError(f"{Path(*parts)} is named twice; name each results folder once")
        seen |= paths
    names = _distinct_names([parts for parts, _ in found])
    return [Captioner(name, runs) for name, (_, runs) in zip(names, found, strict=True)]


def read_verdicts(folders: str | Path | Sequence[str | Path]) -> pd.DataFrame:
    """Read the verdicts of finished runs into one table.

    Args:
        folders: Results folders (lmms-eval's ``--output_path``) or results files. Each model below
            a folder is a captioner; of several runs of a task the newest counts.

    Returns:
        A row per captioner, task, caption, question and judge run, with the columns

        - ``captioner``, ``judge``, ``benchmark``, ``task``, ``video``, ``caption`` (number of the
          caption in its task), ``question_index``, ``question``, ``run``;
        - ``verdict`` for benchmarks whose judge gives labels, ``score`` or the name of a metric for
          numbers; missing if the question is unscored, then ``reason`` says why;
        - the question's group in each section of the benchmark's breakdown, such as ``aspects`` and
          ``categories`` (VDC) or ``dimensions`` (VidCapBench);
        - ``input_tokens``, ``output_tokens``, ``n_words``, ``caption_digest``, ``no_caption``.

        A caption about which nothing was asked has one row without a question.

    Raises:
        DataError: If a folder has no verdicts, or a file cannot be read; the message names it.

    Example:
        Share of right answers in each category of VDC, by captioner::

            table = read_verdicts(["results/alpha", "results/beta"])
            right = table["verdict"].eq("yes").where(table["verdict"].notna())
            right.groupby([table["captioner"], table["categories"]]).mean()
    """
    import pandas as pd

    paths = [folders] if isinstance(folders, str | Path) else folders
    tables = [
        table.rows.assign(
            captioner=captioner.name,
            judge=table.head["judge"],
            benchmark=table.benchmark.name,
            task=table.task,
        )
        for captioner in captioners_of([Path(path) for path in paths])
        for task in captioner.tasks
        for table in captioner.verdicts(task).tables
    ]
    first = ["captioner", "judge", "benchmark", "task", "video", "caption"]
    first += ["question_index", "question", "run"]
    found = pd.concat(tables, ignore_index=True).drop(columns=["copy", "occurrence"])
    return found[[*first, *(name for name in found.columns if name not in first)]]


def common_names(captioners: Sequence[Captioner]) -> list[str]:
    """Return the tasks and groups that all captioners have, in the order of the first."""
    return [name for name in captioners[0].runs if all(name in c.runs for c in captioners)]


def names_to_show(captioners: Sequence[Captioner], wanted: Sequence[str] = ()) -> list[str]:
    """Return the tasks and groups that the user wants, by default all except those in a group.

    Raises:
        SettingsError: If not all captioners have one that is wanted.
        DataError: If they have none in common.
    """
    common = common_names(captioners)
    for name in wanted:
        if name not in common:
            raise SettingsError(
                f"--tasks: expected any of {', '.join(common) or 'none'}, which all results have, "
                f"got {name!r:.80}"
            )
    if not common:
        runs = "; ".join(f"{c.name}: {', '.join(c.runs)}" for c in captioners)
        raise DataError(f"the results have no task and no group in common: {runs}")
    if wanted:
        return list(dict.fromkeys(wanted))
    runs_of = captioners[0].runs
    in_groups = {t for name in common for t in members_of(runs_of[name], name) if t != name}
    return [name for name in common if name not in in_groups]


def _models(folder: Path) -> list[tuple[_Parts, dict[str, RunResults]]]:
    """Return each captioner below a folder: its path's parts, and its newest run of each name."""
    given = folder.expanduser()
    if given.name in ("", ".."):
        given = given.resolve()
    models = read_all_results(given)
    found: list[tuple[_Parts, dict[str, RunResults]]] = []
    for runs in models:
        newest = {name: run for run in runs for name in run.tasks if members_of(run, name)}
        if not newest:
            raise DataError(
                f"{runs[-1].path}: no verdicts of a task of lmms-eval-captions; was it "
                "--predict_only, or another package's task?"
            )
        parts = given.parts
        if given.is_file():
            parts = (*given.parent.parts, given.name.removesuffix(RESULTS))
        elif len(models) > 1:
            parts = (*parts, *runs[-1].path.parent.relative_to(given).parts)
        found.append((parts, newest))
    together = {name: run for _, newest in found for name, run in newest.items()}
    if len(together) == sum(len(newest) for _, newest in found):
        found = [(given.parts if len(models) > 1 else found[0][0], together)]
    return found


def _distinct_names(paths: Sequence[_Parts]) -> list[str]:
    """Return the shortest ends of the paths that tell them apart, cut in the middle if long."""
    names = []
    for path in paths:
        ends = (path[-n:] for n in range(1, len(path)))
        is_own = (end for end in ends if sum(other[-len(end) :] == end for other in paths) == 1)
        names.append("/".join(next(is_own, path)))
    short = [shortened(name, 24) for name in names]
    return [f"{name}#{n}" if short.count(name) > 1 else name for n, name in enumerate(short, 1)]
