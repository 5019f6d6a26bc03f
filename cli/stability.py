"""The command ``stability``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.cli.options import (
    add_command,
    add_output,
    add_tasks,
    split_names,
    write_output,
)

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_stability(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = add_command(
        commands,
        "stability",
        _stability,
        help="how often the judge repeats its verdicts, the noise of scores, and a split by it",
        description="Share of questions with the same verdict in all judge runs, by captioner and "
        "group; the difference of scores below which the judge's noise explains it; with --split, "
        "question files of those that are stable and of the others. Needs captions that were "
        "judged with LMMS_CAPTIONS_JUDGE_RUNS of at least 2, better 3.",
        example="lmms-eval-captions stability results/mine --tasks vidcapbench_ae --split splits",
    )
    command.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="results folders")
    add_tasks(command)
    command.add_argument(
        "--split",
        type=Path,
        metavar="DIR",
        help="write <benchmark>-stable and <benchmark>-unstable there: official question files, "
        "each folder a value of LMMS_CAPTIONS_DATA",
    )
    command.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="GROUP",
        help="split off unstable questions of this group only, such as 'physical laws'; may be "
        "given several times",
    )
    command.add_argument(
        "--format",
        choices=["text", "markdown", "latex", "json"],
        default="text",
        help="(default: text)",
    )
    add_output(command)


def _stability(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.analysis.stability import report
    from lmms_eval_captions.analysis.stability.split import split_all
    from lmms_eval_captions.analysis.stability.stability import document_of, stability
    from lmms_eval_captions.analysis.tables import as_json, render
    from lmms_eval_captions.judges.settings import read_data_settings

    several = stability(arguments.folders, split_names(arguments.tasks))
    splits = []
    if arguments.split is not None:
        settings, only = read_data_settings(), tuple(arguments.only)
        splits = split_all(several, settings, arguments.split, only=only)
    documents = [document_of(repeated) for repeated in several]
    if arguments.format == "json":
        made = list(map(report.split_document, splits))
        text = as_json({"stability": documents, "splits": made})
    else:
        parts = [*map(report.part_of, documents), *map(report.part_of_split, splits)]
        text = render(parts, arguments.format)
    write_output(text, arguments.output)
    return 0
