"""Looks through a results folder for scores that must not be trusted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path

from lmms_eval_captions.judges.bounded_files import parse_json, read_whole
from lmms_eval_captions.judges.errors import DataError

_SIGNATURE = "signature,"
_UNAVAILABLE = re.compile(r"\|(\w+):unavailable(?=\|)")
_UNSCORED = re.compile(r"\|unscored:(\d{1,18})/(\d{1,18})\|")


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
    files = [folder] if folder.is_file() else _newest(folder)
    if not files:
        raise DataError(
            f"{folder}: no *_results.json here or below; give the folder that lmms-eval had as "
            "--output_path. A run that ended early writes none: look at the end of its log"
        )
    report = Report()
    for path in files:
        results = _read(path)
        ours = {
            task: metrics
            for task, metrics in results.items()
            if any(name.startswith(_SIGNATURE) for name in metrics)
        }
        if not ours:
            report.problems.append(f"problem  {path}: holds no task of lmms-eval-captions")
        for task, metrics in ours.items():
            problems = list(_problems(metrics, max_unscored=max_unscored))
            report.problems += [f"problem  {path.name}: {task}: {text}" for text in problems]
            if not problems:
                report.fine.append(f"ok       {path.name}: {task}: {_signature(metrics)}")
    return report


def _problems(metrics: Mapping[str, object], *, max_unscored: float) -> list[str]:
    # A metric whose signature says that it is unavailable (no tokenizer) is nan for that reason.
    unavailable = set(_UNAVAILABLE.findall(_signature(metrics)))
    problems = [
        f"{name.partition(',')[0]} is nan"
        for name, value in metrics.items()
        if isinstance(value, float) and isnan(value) and "_stderr" not in name
        if name.partition(",")[0] not in unavailable
    ]
    found = _UNSCORED.search(_signature(metrics))
    if found:
        n_unscored, n_questions = int(found[1]), int(found[2])
        if n_unscored > max_unscored * n_questions:
            share = f" ({n_unscored / n_questions:.2%})" if n_questions else ""
            problems.append(f"{n_unscored} of {n_questions} questions are unscored{share}")
    return problems


def _signature(metrics: Mapping[str, object]) -> str:
    return next(str(value) for name, value in metrics.items() if name.startswith(_SIGNATURE))


def _newest(folder: Path) -> list[Path]:
    newest: dict[Path, Path] = {}
    for path in sorted(folder.rglob("*_results.json")):
        # Names begin with the time of the run.
        newest[path.parent] = path
    return list(newest.values())


def _read(path: Path) -> dict[str, dict[str, object]]:
    try:
        content = parse_json(read_whole(path))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: expected a results file of lmms-eval: {error}") from error
    results = content.get("results") if isinstance(content, dict) else None
    if not isinstance(results, dict) or not all(isinstance(m, dict) for m in results.values()):
        raise DataError(
            f"{path}: expected a results file of lmms-eval, with each task's metrics under "
            f"'results', got {content!r:.80}"
        )
    return results
