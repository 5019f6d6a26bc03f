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

    from lmms_eval_captions.analysis.meta_eval.report import PairReport, Report

_SETTINGS: Final = ("ref_only", "ref_free", "combined")
_FOLDERS: Final = {
    "flickr8k-expert": "flickr8k",
    "flickr8k-cf": "flickr8k",
    "vatex-eval": "vatex_eval",
    "foil": "foil",
}
"""Published sets of rated captions to where their files are below ``LMMS_CAPTIONS_DATA``."""
_FEW_RESAMPLES: Final = 200
"""Draws of the intervals of sets with tens of thousands of ratings."""
_N_REFERENCES: Final = {"vatex-eval": (1, 9), "foil": (1, 4)}
"""Sets whose tables have columns for several numbers of references; the last is the default."""


def add_meta_eval(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the parser of ``lmms-eval-captions``."""
    command = commands.add_parser(
        "meta-eval",
        help="how well metrics agree with people: Kendall's tau on a benchmark's human ratings",
        description="Correlates metrics of the published candidates with the annotators' ratings: "
        "classic metrics (needs java), G-VEval where LMMS_CAPTIONS_JUDGE names a judge (msvd), and "
        "your own scores. Beside each stands how well the annotators agree among themselves. Of "
        "foil: how often a metric prefers the right caption.",
    )
    command.add_argument("benchmark", choices=["msvd", *_FOLDERS], help="whose ratings")
    command.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder of the published files, of all but msvd; by default that of the set below "
        "LMMS_CAPTIONS_DATA (flickr8k, vatex_eval, foil)",
    )
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
        "--items",
        type=Path,
        metavar="FILE",
        help="of all but msvd: write the captions that a metric of your own is to score, by the "
        "names that --scores knows them by, and stop",
    )
    command.add_argument(
        "--references",
        type=int,
        metavar="N",
        help="references of each caption: 1 to 9 of vatex-eval (9), 1 or 4 of foil (4)",
    )
    command.add_argument(
        "--ratings",
        choices=["each", "mean"],
        default="each",
        help="flickr8k-expert: compare with every expert's rating (default), or with the mean of "
        "a caption's three, as G-VEval's released code does",
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
        "--resamples",
        type=int,
        metavar="N",
        help=f"draws of the intervals (1000; {_FEW_RESAMPLES} of sets other than msvd)",
    )
    command.add_argument("--output", type=Path, metavar="FILE", help="write the report as JSON too")
    command.set_defaults(run=_meta_eval)


def _meta_eval(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.judges.errors import SettingsError

    if arguments.resamples is not None and arguments.resamples < 1:
        raise SettingsError(f"--resamples: expected at least 1, got {arguments.resamples}")
    if arguments.benchmark == "msvd":
        return _msvd(arguments)
    return _published(arguments)


def _msvd(arguments: argparse.Namespace) -> int:
    """Of MSVD-Eval."""
    from lmms_eval_captions.analysis.meta_eval.meta_eval import meta_eval_msvd
    from lmms_eval_captions.analysis.meta_eval.report import table
    from lmms_eval_captions.judges.errors import SettingsError
    from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN

    for option in ("data", "items", "references"):
        if getattr(arguments, option) is not None:
            raise SettingsError(f"--{option}: msvd has none, see --help")
    settings = arguments.gveval
    if settings is None:
        settings = _SETTINGS if JUDGE_RUN.settings().judge else ()
    if not settings:
        _require_metric(arguments, "settings behind --gveval, ")
    try:
        report = meta_eval_msvd(
            classic=not arguments.no_classic,
            settings=settings,
            score_files=arguments.scores,
            sampling=arguments.frames,
            n_resamples=arguments.resamples or 1000,
        )
    finally:
        JUDGE_RUN.close()
    text = table(report)
    if arguments.gveval is None and not settings:
        text += "\nG-VEval is left out: LMMS_CAPTIONS_JUDGE names no judge"
    n_missing = sum(isnan(row.tau_b) for row in report.rows)
    return _show(arguments, report, text, n_missing)


def _published(arguments: argparse.Namespace) -> int:
    """Of another published set."""
    from lmms_eval_captions.judges.errors import SettingsError

    if arguments.gveval:
        raise SettingsError(
            f"--gveval: the judge is asked for msvd alone; give its scores of "
            f"{arguments.benchmark} with --scores"
        )
    if arguments.items is None:
        _require_metric(arguments)
    if arguments.ratings == "mean" and arguments.benchmark != "flickr8k-expert":
        raise SettingsError("--ratings mean: of flickr8k-expert alone, see --help")
    n_references = _n_references(arguments)
    folder = arguments.data or _local_folder(arguments.benchmark)
    if arguments.benchmark == "foil":
        return _foil(arguments, folder, n_references)
    return _ratings(arguments, folder, n_references)


def _ratings(arguments: argparse.Namespace, folder: Path, n_references: int) -> int:
    from lmms_eval_captions.analysis.meta_eval.flickr8k import read_flickr8k
    from lmms_eval_captions.analysis.meta_eval.published_sets import (
        meta_eval_ratings,
    )
    from lmms_eval_captions.analysis.meta_eval.rated_captions import write_items
    from lmms_eval_captions.analysis.meta_eval.report import table
    from lmms_eval_captions.analysis.meta_eval.vatex_eval import read_vatex_eval

    if arguments.benchmark == "vatex-eval":
        rated = read_vatex_eval(folder, n_references)
    else:
        rated = read_flickr8k(folder, arguments.benchmark, arguments.ratings)
    if arguments.items is not None:
        rows = [
            {
                "id": str(place),
                "source": item.source,
                "candidate": item.candidate,
                "references": item.references,
            }
            for place, item in enumerate(rated.items)
        ]
        write_items(arguments.items, rows)
        return 0
    report = meta_eval_ratings(
        rated,
        classic=not arguments.no_classic,
        score_files=arguments.scores,
        n_resamples=arguments.resamples or _FEW_RESAMPLES,
    )
    n_missing = sum(isnan(row.tau_b) for row in report.rows)
    return _show(arguments, report, table(report), n_missing)


def _foil(arguments: argparse.Namespace, folder: Path, n_references: int) -> int:
    from lmms_eval_captions.analysis.meta_eval.foil import read_foil
    from lmms_eval_captions.analysis.meta_eval.published_sets import meta_eval_foil
    from lmms_eval_captions.analysis.meta_eval.rated_captions import write_items
    from lmms_eval_captions.analysis.meta_eval.report import pair_table

    pairs = read_foil(folder, n_references)
    if arguments.items is not None:
        rows = [
            {
                "id": f"{place}-{side}",
                "source": pair.image,
                "candidate": text,
                "references": pair.references,
            }
            for place, pair in enumerate(pairs)
            for side, text in (("right", pair.right), ("wrong", pair.wrong))
        ]
        write_items(arguments.items, rows)
        return 0
    report = meta_eval_foil(
        pairs,
        n_references=n_references,
        classic=not arguments.no_classic,
        score_files=arguments.scores,
    )
    n_missing = sum(isnan(row.accuracy) for row in report.rows)
    return _show(arguments, report, pair_table(report), n_missing)


def _require_metric(arguments: argparse.Namespace, more: str = "") -> None:
    from lmms_eval_captions.judges.errors import SettingsError

    if arguments.no_classic and not arguments.scores:
        raise SettingsError(
            f"meta-eval: nothing is left to compare with the ratings; give --scores FILE, {more}"
            "or leave --no-classic out"
        )


def _local_folder(benchmark: str) -> Path:
    """Where a set's files are below the root of local data."""
    from lmms_eval_captions.judges.errors import SettingsError
    from lmms_eval_captions.judges.settings import SAMPLE, data_settings

    root = data_settings().data
    if root is None or root == SAMPLE:
        raise SettingsError(
            f"meta-eval {benchmark}: its files are not downloaded; name their folder with --data, "
            f"or put it at {_FOLDERS[benchmark]} below LMMS_CAPTIONS_DATA"
        )
    return Path(root).expanduser() / _FOLDERS[benchmark]


def _n_references(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.judges.errors import SettingsError

    given, name = arguments.references, arguments.benchmark
    if name not in _N_REFERENCES:
        if given is not None:
            raise SettingsError(f"--references: {name} has no choice of references, see --help")
        return 0
    least, most = _N_REFERENCES[name]
    if given is None:
        return most
    if not least <= given <= most or (name == "foil" and given not in (least, most)):
        expected = f"{least} or {most}" if name == "foil" else f"{least} to {most}"
        raise SettingsError(f"--references: expected {expected} for {name}, got {given}")
    return int(given)


def _show(
    arguments: argparse.Namespace, report: Report | PairReport, text: str, n_missing: int
) -> int:
    """Print a report, write it where that is asked for, and say what has no value."""
    from lmms_eval_captions.judges.errors import DataError

    sys.stdout.write(f"{text}\n")
    if arguments.output:
        try:
            raw = json.dumps(report.to_json(), indent=2, ensure_ascii=False)
            arguments.output.write_text(raw, encoding="utf-8")
        except OSError as error:
            raise DataError(f"{arguments.output} cannot be written: {error}") from error
    if n_missing:
        sys.stderr.write(
            f"lmms-eval-captions meta-eval: problem: {n_missing} of {len(report.rows)} "
            "correlations have no value, as too few candidates have a score; the lines above say "
            "why. Mend that, and run the same command again: verdicts are kept\n"
        )
    return 1 if n_missing else 0
