"""Looks through a results folder for scores that must not be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path

from lmms_eval_captions.lmms_eval_tasks.results_folder import read_results
from lmms_eval_captions.lmms_eval_tasks.signature import Signature


@dataclass(slots=True)
class Report:
    """What was found, a line each."""

    fine: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def check_folder(folder: Path, *, max_unscored: float) -> Report:
    """Check the newest results of every model below a folder.

    Args:
        folder: What was given to lmms-eval as ``--output_path``; also one results file.
        max_unscored: Largest share of unscored questions that is fine, in [0, 1].

    Raises:
        DataError: If there is no results file, or one cannot be read.
    """
    report = Report()
    for run in read_results(folder):
        signatures = {name: task.signature for name, task in run.tasks.items()}
        if not any(signatures.values()):
            report.problems.append(f"problem  {run.path}: holds no task of lmms-eval-captions")
        for name, signature in signatures.items():
            if signature is None:
                continue
            problems = _problems(run.tasks[name].scores, signature, max_unscored=max_unscored)
            told = [f"problem  {run.path.name}: {name}: {problem}" for problem in problems]
            report.problems += told
            if not told:
                report.fine.append(f"ok       {run.path.name}: {name}: {signature}")
    return report


def _problems(
    scores: Mapping[str, float], signature: Signature, *, max_unscored: float
) -> Iterator[str]:
    for metric, value in scores.items():
        # A metric that its signature says is unavailable (no tokenizer) is nan for that reason.
        if isnan(value) and metric not in signature.unavailable:
            yield f"{metric} is nan"
    unscored = signature.unscored
    if unscored and unscored.n > max_unscored * unscored.of:
        share = f" ({unscored.n / unscored.of:.2%})" if unscored.of else ""
        yield f"{unscored.n} of {unscored.of} questions are unscored{share}"
