"""The subcommand ``meta-eval`` of ``lmms-eval-captions``."""

from __future__ import annotations

import argparse
import json
import sys
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_SETTINGS: Final = ("ref_only", "ref_free", "combined")


def add_meta_eval(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the parser of ``lmms-eval-captions``."""
    command = commands.add_parser(
        "meta-eval",
        help="how well metrics agree with people: Kendall's tau on a benchmark's human ratings",
        description="Correlates metrics of the published candidates with the annotators' ratings: "
        "classic metrics (needs java), G-VEval where LMMS_CAPTIONS_JUDGE names a judge, and your "
        "own scores.",
    )
    command.add_argument("benchmark", choices=["msvd"], help="whose ratings")
    command.add_argument(
        "--scores",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="your own metric: .json (an object from video to number or to columns), .jsonl or "
        ".csv; may be given again",
    )
    command.add_argument(
        "--gveval",
        nargs="*",
        choices=_SETTINGS,
        metavar="SETTING",
        help="settings of G-VEval to ask the judge for, of %(choices)s; by default all where "
        "LMMS_CAPTIONS_JUDGE is set, else none; without a name none",
    )
    command.add_argument("--no-classic", action="store_true", help="leave the classic metrics out")
    command.add_argument(
        "--frames",
        choices=["first_middle_last", "thirds"],
        default="first_middle_last",
        help="which frames G-VEval's judge sees: the paper's (default), or the released code's",
    )
    command.add_argument(
        "--resamples", type=int, default=1000, metavar="N", help="draws of the intervals (1000)"
    )
    command.add_argument("--output", type=Path, metavar="FILE", help="write the report as JSON too")
    command.set_defaults(run=_meta_eval)


def _meta_eval(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.judges.errors import DataError, SettingsError
    from lmms_eval_captions.lmms_eval_tasks.commands.meta_eval.meta_eval import meta_eval_msvd
    from lmms_eval_captions.lmms_eval_tasks.commands.meta_eval.report import table
    from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN

    if arguments.resamples < 1:
        raise SettingsError(f"--resamples: expected at least 1, got {arguments.resamples}")
    settings = arguments.gveval
    if settings is None:
        settings = _SETTINGS if JUDGE_RUN.settings().judge else ()
    if arguments.no_classic and not settings and not arguments.scores:
        raise SettingsError(
            "meta-eval: nothing is left to compare with the ratings; give --scores FILE, settings "
            "behind --gveval, or leave --no-classic out"
        )
    try:
        report = meta_eval_msvd(
            classic=not arguments.no_classic,
            settings=settings,
            score_files=arguments.scores,
            sampling=arguments.frames,
            n_resamples=arguments.resamples,
        )
    finally:
        JUDGE_RUN.close()
    text = table(report)
    if arguments.gveval is None and not settings:
        text += "\nG-VEval is left out: LMMS_CAPTIONS_JUDGE names no judge"
    sys.stdout.write(f"{text}\n")
    if arguments.output:
        try:
            raw = json.dumps(report.to_json(), indent=2, ensure_ascii=False)
            arguments.output.write_text(raw, encoding="utf-8")
        except OSError as error:
            raise DataError(f"{arguments.output} cannot be written: {error}") from error
    n_missing = sum(isnan(row.tau_b) for row in report.rows)
    if n_missing:
        sys.stderr.write(
            f"lmms-eval-captions meta-eval: problem: {n_missing} of {len(report.rows)} "
            "correlations have no value, as too few candidates have a score; the lines above say "
            "why. Mend that, and run the same command again: verdicts are kept\n"
        )
    return 1 if n_missing else 0
