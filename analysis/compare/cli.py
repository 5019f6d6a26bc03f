"""The subcommand ``compare`` of ``lmms-eval-captions``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.lmms_eval_tasks.commands.name_list import split_names
from lmms_eval_captions.lmms_eval_tasks.commands.output import add_output, write_output

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Sequence

    from lmms_eval_captions.analysis.compare.gate import Gate
    from lmms_eval_captions.analysis.verdicts.captioners import Captioner

FORMATS: Final = ("text", "markdown", "latex", "csv", "json")


def add_compare(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the parser of ``lmms-eval-captions``."""
    command = commands.add_parser(
        "compare",
        help="which captioner is better, by how much, and whether that is sure; paper tables",
        description="Compares captioners on the videos and questions that all have a verdict on: "
        "differences to the first folder with 95%% intervals over videos, p-values, verdicts that "
        "flip, videos and groups that moved most. With one folder, or --paper: the table of the "
        "benchmark's paper. Asks no judge. Exit code: 0; with --gate 0 for GO, 1 for NO-GO, 3 for "
        "INCONCLUSIVE; 2 for what cannot be compared.",
    )
    command.add_argument(
        "folders",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        help="folders given to lmms-eval as --output_path, the one to compare with first; each "
        "model below one is a captioner",
    )
    command.add_argument(
        "--tasks", metavar="NAMES", help="tasks and groups, separated by commas; default: all"
    )
    command.add_argument(
        "--group",
        metavar="SECTION",
        help="section of the breakdown by which differences are shown, such as categories; "
        "default: the benchmark's first",
    )
    command.add_argument(
        "--gate",
        action="append",
        default=[],
        metavar="[TASK:]METRIC>=BOUND",
        help="bound on the difference to the first folder, such as 'vdc_acc>=-0.5'; may be given "
        "several times, then all must hold",
    )
    command.add_argument(
        "--across-judges",
        action="store_true",
        help="compare also what was judged in different ways, and say so",
    )
    command.add_argument(
        "--paper", action="store_true", help="the table of the benchmark's paper, a row for each"
    )
    command.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    add_output(command)
    command.set_defaults(run=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.analysis.compare.gate import Gate
    from lmms_eval_captions.analysis.verdicts.captioners import captioners_of
    from lmms_eval_captions.judges.errors import SettingsError

    gates = [Gate.parse(text) for text in arguments.gate]
    captioners = captioners_of(arguments.folders)
    names = split_names(arguments.tasks)
    if arguments.paper or len(captioners) == 1:
        for option, is_set in (("--gate", gates), ("--group", arguments.group)):
            if is_set:
                raise SettingsError(
                    f"{option}: expected results of two captioners and no --paper, got "
                    f"{len(captioners)}"
                )
        write_output(_paper(captioners, names, arguments.format), arguments.output)
        return 0
    text, code = _comparison(captioners, names, gates, arguments)
    write_output(text, arguments.output)
    return code


def _comparison(
    captioners: Sequence[Captioner],
    names: Sequence[str],
    gates: Sequence[Gate],
    arguments: argparse.Namespace,
) -> tuple[str, int]:
    from lmms_eval_captions.analysis.compare import data, report
    from lmms_eval_captions.analysis.compare.comparison import (
        Comparer,
        compare_all,
    )
    from lmms_eval_captions.analysis.compare.gate import decide, exit_code
    from lmms_eval_captions.analysis.verdicts.shown import names_to_show
    from lmms_eval_captions.lmms_eval_tasks.table_formats import RENDERERS

    shown = names_to_show(captioners, names)
    comparer = Comparer(captioners, arguments.across_judges)
    compared, left_out = compare_all(comparer, shown, arguments.group, is_asked=bool(names))
    decided = decide(comparer, gates, [one.name for one in compared])
    code = exit_code(decided)
    if arguments.format == "json":
        return data.as_json(compared, left_out, decided, captioners), code
    called = [captioner.name for captioner in captioners]
    if arguments.format == "csv":
        for one in decided:
            sys.stderr.write(f"{report.gate_sentence(one, called)}\n")
        return data.as_csv(compared, captioners), code
    parts = [report.part_of(one, called) for one in compared]
    if len(compared) + len(left_out) > 1:
        parts.insert(0, report.overview(compared, called, left_out))
    if decided:
        parts.append(report.gate_part(decided, called))
    return RENDERERS[arguments.format](parts), code


def _paper(captioners: Sequence[Captioner], names: Sequence[str], kind: str) -> str:
    from lmms_eval_captions.analysis.compare import paper
    from lmms_eval_captions.lmms_eval_tasks.table_formats import RENDERERS

    filled = paper.fill_tables(captioners, names)
    if kind == "json":
        return paper.as_json(filled)
    if kind == "csv":
        return paper.as_csv(filled)
    return RENDERERS[kind]([paper.part_of(one, captioners) for one in filled])
