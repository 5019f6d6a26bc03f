"""From the folders that a user names to runs with their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lmms_eval_captions.analysis.agree.judged import JudgedRun, Panel
from lmms_eval_captions.analysis.verdicts.captioners import captioners_of
from lmms_eval_captions.analysis.verdicts.verdicts import (
    TaskVerdicts,
    names_with_verdicts,
    read_verdicts,
)
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.results_folder import (
    RESULTS,
    RunResults,
    read_all_results,
)
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks
from lmms_eval_captions.lmms_eval_tasks.verdict_file import verdict_path


def runs_below(folders: Sequence[Path], chosen: set[str] | None) -> list[JudgedRun]:
    """Every run of every model below some folders, those of a model from the oldest on.

    Args:
        folders: As lmms-eval's ``--output_path``.
        chosen: Tasks that are looked at, ``None`` for all.

    Raises:
        DataError: If one cannot be read, does not say which captions it judged, or if there are no
            verdicts of these tasks.
    """
    # Names, and what is wrong with folders, as for captioners; but of a model all runs are looked
    # at, for they may be of several judges.
    names = [captioner.name for captioner in captioners_of(folders)]
    models = [runs for folder in folders for runs in read_all_results(folder)]
    judged: list[JudgedRun] = []
    for name, runs in zip(names, models, strict=True):
        of_model = [JudgedRun(name, (run,), _tasks_of_run(run, chosen, runs[-1])) for run in runs]
        of_model = [run for run in of_model if run.tasks]
        told = [run for run in of_model if any(run.digests().values())]
        if of_model and not told:
            raise DataError(
                f"{runs[-1].path}: the run does not say which captions it judged: an older version "
                "wrote it. Score the captions again: the judge is asked nothing that it was asked "
                "before"
            )
        judged.extend(told)
    if not judged:
        raise DataError(f"no verdicts of these tasks in {', '.join(map(str, folders))}")
    return judged


def _tasks_of_run(
    run: RunResults, chosen: set[str] | None, newest: RunResults
) -> dict[str, TaskVerdicts]:
    """The verdicts of a run's tasks; of an older run those that it kept."""
    stamp = run.path.name.removesuffix(RESULTS)
    names = [name for name in names_with_verdicts(run) if name in our_benchmarks()]
    return {
        name: read_verdicts(run, name).tasks[0]
        for name in names
        if (chosen is None or name in chosen)
        and (run is newest or verdict_path(run.path.parent, stamp, name).is_file())
    }


def with_reference(panels: Sequence[Panel], reference: str | None) -> list[Panel]:
    """The panels with the reference as the first of their judges, where it is one of them.

    Args:
        panels: Those of all benchmarks.
        reference: A judge's name, or a part that no other's has; ``None`` leaves them as they are.

    Raises:
        SettingsError: If there is no such judge, or several.
    """
    if reference is None:
        return list(panels)
    names = dict.fromkeys(judge.name for panel in panels for judge in panel.judges)
    meant = [name for name in names if name == reference]
    meant = meant or [name for name in names if reference in name]
    if len(meant) != 1:
        raise SettingsError(
            f"--reference: expected one of {', '.join(names)}, got {reference!r:.80}"
        )
    return [
        replace(panel, judges=tuple(sorted(panel.judges, key=lambda j: j.name != meant[0])))
        for panel in panels
    ]
