"""The subcommand ``vcapsbench-verdicts`` of ``lmms-eval-captions``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_commands(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``vcapsbench-verdicts`` to the parser of ``lmms-eval-captions``."""
    command = commands.add_parser(
        "vcapsbench-verdicts",
        help="ar, ir and cr of the verdict files that VCapsBench's authors publish",
        description="Recomputes the paper's tables from the judges' published verdicts: overall, "
        "for the 4 groups and the 21 categories. Nothing is asked. Exits with 1 where a row could "
        "not be read.",
    )
    command.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a .csv file, or a .zip file of them"
    )
    command.set_defaults(run=_vcapsbench_verdicts)


def _vcapsbench_verdicts(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.lmms_eval_tasks.breakdown_table import table_of
    from lmms_eval_captions.lmms_eval_tasks.vcapsbench.published_verdicts import (
        read_published_verdicts,
    )

    n_unreadable = 0
    for path in arguments.files:
        for published in read_published_verdicts(path):
            n_unreadable += published.n_unreadable
            sys.stdout.write(
                f"{published.name}: {len(published.verdicts) + published.n_malformed:,} rows, "
                f"{published.verdicts.count(None):,} without a readable verdict, "
                f"{published.n_malformed:,} without a category; {published.n_contradicted:,} "
                "verdicts are not what the row's own answers give\n"
                f"{table_of(published.breakdown())}\n"
            )
    return 1 if n_unreadable else 0
