"""The subcommand ``stability`` of ``lmms-eval-captions``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Iterator, Sequence

    from lmms_eval_captions.lmms_eval_tasks.commands.stability.split import Split


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
        "part of their scale (5)",
    )
    command.add_argument(
        "--split",
        type=Path,
        metavar="DIR",
        help="write <benchmark>-stable and <benchmark>-unstable there: official question files, "
        "each folder a value of LMMS_CAPTIONS_DATA; reads the originals where that says",
    )
    command.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="NAME",
        help="split off unstable questions of this group alone, such as 'physical laws'; may be "
        "given again",
    )
    command.add_argument(
        "--format", choices=["text", "markdown", "json"], default="text", help="(text)"
    )
    command.set_defaults(run=_stability)


def _stability(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.judges.settings import read_data_settings
    from lmms_eval_captions.lmms_eval_tasks.commands.stability.document import document_of, json_of
    from lmms_eval_captions.lmms_eval_tasks.commands.stability.fates import Rule
    from lmms_eval_captions.lmms_eval_tasks.commands.stability.stability import (
        split_all,
        stability,
    )
    from lmms_eval_captions.lmms_eval_tasks.commands.stability.text import lines_of

    rule = Rule(arguments.within / 100, tuple(arguments.group))
    several = stability(arguments.folders, arguments.tasks, within=rule.within)
    splits: Sequence[Split] = ()
    if arguments.split is not None:
        splits = split_all(several, read_data_settings(), arguments.split, rule)
    documents = [document_of(opinions) for opinions in several]
    if arguments.format == "json":
        whole = {"stability": list(map(json_of, documents)), "splits": list(map(_json, splits))}
        sys.stdout.write(f"{json.dumps(whole, indent=1, ensure_ascii=False)}\n")
        return 0
    for document in documents:
        lines = lines_of(document, arguments.format)
        sys.stdout.write("".join(f"{line}\n" for line in (*lines, "")))
    sys.stdout.write("".join(f"{line}\n" for done in splits for line in _lines(done)))
    return 0


def _lines(done: Split) -> Iterator[str]:
    """What was written, and how it is used."""
    fates: dict[str, int] = {}
    for of_file in done.files.values():
        for fate, n in of_file.items():
            fates[fate] = fates.get(fate, 0) + n
    why = ", ".join(f"{n:,} {fate}" for fate, n in fates.items())
    yield f"{done.benchmark}: {sum(fates.values()):,} questions: {why}"
    for part, folder in done.folders.items():
        yield f"  {done.n_of(part):>9,} {part:<8}  LMMS_CAPTIONS_DATA={folder}"


def _json(done: Split) -> dict[str, object]:
    return {
        "benchmark": done.benchmark,
        "folders": {part: str(folder) for part, folder in done.folders.items()},
        "n_questions": {part: done.n_of(part) for part in done.folders},
        "files": {name: dict(of_file) for name, of_file in done.files.items()},
    }


def _names(text: str) -> list[str]:
    names = [name for name in (part.strip() for part in text.split(",")) if name]
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
