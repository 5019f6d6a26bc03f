"""The command ``meta-eval``."""

from __future__ import annotations

import argparse
import sys
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.cli.options import add_command, positive, write_output

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_SETTINGS: Final = ("ref_only", "ref_free", "combined")
_FOLDERS: Final = {
    "flickr8k-expert": "flickr8k",
    "flickr8k-cf": "flickr8k",
    "vatex-eval": "vatex_eval",
    "foil": "foil",
}
"""Folders of published sets of rated captions below ``LMMS_CAPTIONS_DATA``."""
_FEW_RESAMPLES: Final = 200
"""Draws of the intervals of sets with tens of thousands of ratings."""
_N_REFERENCES: Final = {"vatex-eval": range(1, 10), "foil": (1, 4)}
"""Numbers of references of sets whose tables have columns for several; the last is the default."""


def add_meta_eval(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = add_command(
        commands,
        "meta-eval",
        _meta_eval,
        help="how well metrics agree with people: Kendall's tau on a benchmark's human ratings",
        description="Correlates metrics of the published candidates with the annotators' ratings: "
        "classic metrics (needs java), G-VEval if LMMS_CAPTIONS_JUDGE names a judge (msvd), and "
        "your own scores, next to the agreement of annotators among themselves. For foil: how "
        "often a metric prefers the right caption.",
        example="lmms-eval-captions meta-eval msvd --scores mine.json",
    )
    command.add_argument("benchmark", choices=["msvd", *_FOLDERS], help="whose ratings")
    command.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder of the published files, except for msvd (default: flickr8k, vatex_eval or "
        "foil below LMMS_CAPTIONS_DATA)",
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
        help="except for msvd: write the captions that your own metric is to score, with the names "
        "that --scores expects, and stop",
    )
    command.add_argument(
        "--references",
        type=int,
        metavar="N",
        help="references of each caption: 1 to 9 for vatex-eval (default: 9), 1 or 4 for foil "
        "(default: 4)",
    )
    command.add_argument(
        "--ratings",
        choices=["each", "mean"],
        default="each",
        help="flickr8k-expert: compare with every expert's rating, or with the mean of a caption's "
        "three, as G-VEval's released code does (default: each)",
    )
    command.add_argument(
        "--gveval",
        nargs="*",
        choices=_SETTINGS,
        metavar="SETTING",
        help="settings of G-VEval to ask the judge for, of %(choices)s; none without a name "
        "(default: all if LMMS_CAPTIONS_JUDGE is set, else none)",
    )
    command.add_argument("--no-classic", action="store_true", help="leave the classic metrics out")
    command.add_argument(
        "--frames",
        choices=["first_middle_last", "thirds"],
        default="first_middle_last",
        help="frames that G-VEval's judge sees: the paper's, or the released code's (default: "
        "first_middle_last)",
    )
    command.add_argument(
        "--resamples",
        type=positive,
        metavar="N",
        help=f"draws of the intervals (default: 1000; {_FEW_RESAMPLES} except for msvd)",
    )
    command.add_argument(
        "--output", type=Path, metavar="FILE", help="also write the report as JSON"
    )


def _meta_eval(arguments: argparse.Namespace) -> int:
    if arguments.benchmark == "msvd":
        return _msvd(arguments)
    from lmms_eval_captions.judges.errors import SettingsError

    if arguments.gveval:
        raise SettingsError(
            f"--gveval: the judge is asked for msvd only; give its scores of "
            f"{arguments.benchmark} with --scores"
        )
    if arguments.items is None:
        _require_metric(arguments)
    if arguments.ratings == "mean" and arguments.benchmark != "flickr8k-expert":
        raise SettingsError("--ratings mean: only for flickr8k-expert, see --help")
    n_references = _n_references(arguments)
    folder = arguments.data or _local_folder(arguments.benchmark)
    if arguments.benchmark == "foil":
        return _foil(arguments, folder, n_references)
    return _ratings(arguments, folder, n_references)


def _msvd(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.analysis.meta_eval.correlating import text_of
    from lmms_eval_captions.analysis.meta_eval.msvd import meta_eval_msvd
    from lmms_eval_captions.judges.errors import SettingsError
    from lmms_eval_captions.lmms_eval_tasks.session import SESSION

    for option in ("data", "items", "references"):
        if getattr(arguments, option) is not None:
            raise SettingsError(f"--{option}: not for msvd, see --help")
    settings = arguments.gveval
    if settings is None:
        settings = _SETTINGS if SESSION.settings().judge else ()
    if not settings:
        _require_metric(arguments, "settings of --gveval, ")
    try:
        report = meta_eval_msvd(
            classic=not arguments.no_classic,
            settings=settings,
            score_files=arguments.scores,
            sampling=arguments.frames,
            n_resamples=arguments.resamples or 1000,
        )
    finally:
        SESSION.close()
    text = text_of(report)
    if arguments.gveval is None and not settings:
        text += "\nG-VEval is left out: LMMS_CAPTIONS_JUDGE names no judge"
    return _show(arguments, report, text, "tau_b")


def _ratings(arguments: argparse.Namespace, folder: Path, n_references: int) -> int:
    from lmms_eval_captions.analysis.meta_eval.correlating import meta_eval_ratings, text_of
    from lmms_eval_captions.analysis.meta_eval.published_sets import (
        items_text,
        read_flickr8k,
        read_vatex_eval,
    )

    if arguments.benchmark == "vatex-eval":
        rated = read_vatex_eval(folder, n_references)
    else:
        rated = read_flickr8k(folder, arguments.benchmark, arguments.ratings)
    if arguments.items is not None:
        write_output(items_text(rated.items), arguments.items)
        return 0
    report = meta_eval_ratings(
        rated,
        classic=not arguments.no_classic,
        score_files=arguments.scores,
        n_resamples=arguments.resamples or _FEW_RESAMPLES,
    )
    return _show(arguments, report, text_of(report), "tau_b")


def _foil(arguments: argparse.Namespace, folder: Path, n_references: int) -> int:
    from lmms_eval_captions.analysis.meta_eval.correlating import (
        meta_eval_foil,
        names_of,
        text_of_pairs,
    )
    from lmms_eval_captions.analysis.meta_eval.published_sets import items_text, read_foil

    pairs = read_foil(folder, n_references)
    if arguments.items is not None:
        write_output(items_text(pairs, names_of(pairs)), arguments.items)
        return 0
    report = meta_eval_foil(
        pairs,
        n_references=n_references,
        classic=not arguments.no_classic,
        score_files=arguments.scores,
    )
    return _show(arguments, report, text_of_pairs(report), "accuracy")


def _require_metric(arguments: argparse.Namespace, more: str = "") -> None:
    from lmms_eval_captions.judges.errors import SettingsError

    if arguments.no_classic and not arguments.scores:
        raise SettingsError(
            f"meta-eval: no metric is left to compare with the ratings; give --scores FILE, {more}"
            "or leave --no-classic out"
        )


def _local_folder(benchmark: str) -> Path:
    """Return a set's folder below the root of local data."""
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
    known = _N_REFERENCES.get(name, ())
    if given is not None and not known:
        raise SettingsError(f"--references: not for {name}, see --help")
    if given is not None and given not in known:
        expected = ", ".join(map(str, known))
        raise SettingsError(f"--references: expected any of {expected} for {name}, got {given}")
    return int(given or max(known, default=0))


def _show(arguments: argparse.Namespace, report: dict[str, Any], text: str, value: str) -> int:
    """Print a report, write it to a file if asked for, and report missing values."""
    from lmms_eval_captions.analysis.tables import as_json

    sys.stdout.write(f"{text}\n")
    if arguments.output:
        write_output(as_json(report), arguments.output)
    n_missing = sum(isnan(row[value]) for row in report["rows"])
    if n_missing:
        sys.stderr.write(
            f"lmms-eval-captions meta-eval: problem: {n_missing} of {len(report['rows'])} rows "
            "have no value, as too few candidates have a score; the lines above say why. Fix that "
            "and run the same command again: verdicts are kept\n"
        )
    return 1 if n_missing else 0
