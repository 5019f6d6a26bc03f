"""The subcommand ``stability`` of ``lmms-eval-captions``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.lmms_eval_tasks.commands.name_list import split_names

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Sequence

    from lmms_eval_captions.analysis.stability.split import Split


def add_stability(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the parser of ``lmms-eval-captions``."""
    command = commands.add_parser(
        "stability",
        help="how often the judge says the same, what is noise, and a benchmark split by it",
        description="Share of questions that get the same verdict in all judge runs, by captioner "
        "and by group; below which difference two scores differ by the judge's noise alone; and, "
        "with --split, question files of those that are stable and of the others. Needs captions "
        "that were judged with LMMS_CAPTIONS_JUDGE_RUNS of at least 2, better 3.",
    )
    command.add_argument(
        "folders", type=Path, nargs="+", metavar="FOLDER",
        help="results folder of a captioner, or one with several below it",
    )  # fmt: skip
    command.add_argument(
        "--tasks",
        type=_names,
        default=[],
        metavar="NAMES",
        help="tasks and groups, separated by commas; without, all that every captioner has",
    )
    command.add_argument(
        "--within",
        type=_percentage,
        default=5.0,
        metavar="PERCENT",
        help="verdicts that are numbers are the same where no two runs are further apart than this "
        "part of their scale (default: 5)",
    )
    command.add_argument(
        "--split",
        type=Path,
        metavar="DIR",
        help="write <benchmark>-stable and <benchmark>-unstable there: official question files, "
        "each folder a value of LMMS_CAPTIONS_DATA; reads the originals where that says",
    )
    command.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="GROUP",
        help="split off unstable questions of this group of the breakdown alone, such as 'physical "
        "laws'; may be given again",
    )
    command.add_argument(
        "--format",
        choices=["text", "markdown", "latex", "json"],
        default="text",
        help="default: text",
    )
    command.set_defaults(run=_stability)


def _stability(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.analysis.stability.document import document_of, json_of
    from lmms_eval_captions.analysis.stability.fates import Rule
    from lmms_eval_captions.analysis.stability.report import part_of, part_of_split
    from lmms_eval_captions.analysis.stability.stability import (
        split_all,
        stability,
    )
    from lmms_eval_captions.judges.settings import read_data_settings
    from lmms_eval_captions.lmms_eval_tasks.table_formats import RENDERERS

    rule = Rule(arguments.within / 100, tuple(arguments.only))
    several = stability(arguments.folders, arguments.tasks, within=rule.within)
    splits: Sequence[Split] = ()
    if arguments.split is not None:
        splits = split_all(several, read_data_settings(), arguments.split, rule)
    documents = [document_of(opinions) for opinions in several]
    if arguments.format == "json":
        whole = {"stability": list(map(json_of, documents)), "splits": list(map(_json, splits))}
        sys.stdout.write(f"{json.dumps(whole, indent=1, ensure_ascii=False)}\n")
        return 0
    parts = [*map(part_of, documents), *map(part_of_split, splits)]
    sys.stdout.write(RENDERERS[arguments.format](parts))
    return 0


def _json(done: Split) -> dict[str, object]:
    return {
        "benchmark": done.benchmark,
        "folders": {part: str(folder) for part, folder in done.folders.items()},
        "n_questions": {part: done.n_of(part) for part in done.folders},
        "files": {name: dict(of_file) for name, of_file in done.files.items()},
    }


def _names(text: str) -> list[str]:
    names = split_names(text)
    if not names:
        raise argparse.ArgumentTypeError(f"expected names of tasks or groups, got {text!r:.80}")
    return names


def _percentage(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 100, got {text!r:.80}")
    return value
