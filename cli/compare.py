"""The command ``compare``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.cli.options import (
    add_command,
    add_format,
    add_tasks,
    split_names,
    write_output,
)

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Sequence

    from lmms_eval_captions.analysis.captioners import Captioner
    from lmms_eval_captions.analysis.compare.gate import Gate


def add_compare(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = add_command(
        commands,
        "compare",
        _compare,
        help="which captioner is better, and is it significant; tables as in the papers",
        description="Compares captioners on the questions that all have a verdict on: ranking, "
        "differences to the first folder with simultaneous intervals and p-values, groups of "
        "questions, videos. With one folder or --paper: the table of the benchmark's paper. Asks "
        "no judge. Exit code: 0; with --gate 0 for GO, 1 for NO-GO, 3 for INCONCLUSIVE; 2 if the "
        "results cannot be compared.",
        example="lmms-eval-captions compare results/baseline results/mine\n"
        "lmms-eval-captions compare results/baseline results/mine --gate 'vdc_acc>=-0.5'\n"
        "lmms-eval-captions compare results/* --paper --published --format latex",
    )
    command.add_argument(
        "folders",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        help="results folders, the baseline first; each model below one is a captioner",
    )
    add_tasks(command)
    command.add_argument(
        "--group",
        metavar="SECTION",
        help="section of the breakdown to compare groups of, such as categories (default: the "
        "benchmark's first)",
    )
    command.add_argument(
        "--gate",
        action="append",
        default=[],
        metavar="[TASK:]METRIC>=BOUND",
        help="bound on the difference to the first folder, such as 'vdc_acc>=-0.5'; if given "
        "several times, all must hold",
    )
    command.add_argument(
        "--across-judges",
        action="store_true",
        help="compare although captions were judged in different ways, with a warning",
    )
    command.add_argument(
        "--paper",
        action="store_true",
        help="the table of the benchmark's paper, a row per captioner",
    )
    for option, text in (
        ("--intervals", "with --paper: each score with its 95%% interval"),
        ("--mean", "with --paper: a column with the mean over the columns"),
        ("--published", "with --paper: the paper's own rows, with their judge"),
        ("--force", "with --paper: also scores by the offline stand-in"),
    ):
        command.add_argument(option, action="store_true", help=text)
    add_format(command)


def _compare(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.analysis.captioners import captioners_of
    from lmms_eval_captions.analysis.compare.gate import Gate
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
        write_output(_paper(captioners, names, arguments), arguments.output)
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
    import pandas as pd

    from lmms_eval_captions.analysis.captioners import names_to_show
    from lmms_eval_captions.analysis.compare import report
    from lmms_eval_captions.analysis.compare.comparison import Comparer, compare_all
    from lmms_eval_captions.analysis.compare.gate import decide, exit_code
    from lmms_eval_captions.analysis.tables import Part, as_json, render

    shown = names_to_show(captioners, names)
    comparer = Comparer(captioners, arguments.across_judges)
    compared, left_out = compare_all(comparer, shown, arguments.group, is_wanted=bool(names))
    decided = decide(comparer, gates, [one.name for one in compared])
    code = exit_code(decided)
    if arguments.format == "json":
        paths = [(captioner.name, str(captioner.newest.path)) for captioner in captioners]
        return as_json(report.document(compared, left_out, decided, paths)), code
    if arguments.format == "csv":
        for one in decided:
            sys.stderr.write(f"{one['words']}\n")
        lines = [line for one in compared for line in report.lines(one, comparer.names)]
        return pd.DataFrame(lines).to_csv(index=False), code
    parts = [report.part_of(one, comparer.names) for one in compared]
    if len(compared) + len(left_out) > 1:
        parts.insert(0, report.overview(compared, comparer.names, left_out))
    if decided:
        parts.append(Part("Gates", [one["words"] for one in decided]))
    return render(parts, arguments.format), code


def _paper(
    captioners: Sequence[Captioner], names: Sequence[str], arguments: argparse.Namespace
) -> str:
    from lmms_eval_captions.analysis.compare.paper import (
        Options,
        documents,
        fill_tables,
        part_of,
    )
    from lmms_eval_captions.analysis.tables import as_json, render

    options = Options(arguments.intervals, arguments.mean, arguments.published, arguments.force)
    filled = fill_tables(captioners, names)
    parts = [part_of(one, captioners, options) for one in filled]
    if arguments.format == "json":
        return as_json(documents(filled).to_dict("records"))
    if arguments.format == "csv":
        return str(documents(filled).to_csv(index=False))
    return render(parts, arguments.format)
