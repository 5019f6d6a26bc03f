"""The command ``meta-eval``."""

from __future__ import annotations

import sys
from argparse import Namespace
from math import isnan
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.analysis.meta_eval.correlating import (
    meta_eval_foil,
    meta_eval_ratings,
    names_of,
    text_of,
    text_of_pairs,
)
from lmms_eval_captions.analysis.meta_eval.msvd import meta_eval_msvd
from lmms_eval_captions.analysis.meta_eval.published_sets import (
    items_text,
    read_flickr8k,
    read_foil,
    read_vatex_eval,
)
from lmms_eval_captions.analysis.tables import as_json
from lmms_eval_captions.cli.options import write_output
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import SAMPLE, data_settings
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION

_SETTINGS: Final = ("ref_only", "ref_free", "combined")
_FOLDERS: Final = {
    "flickr8k-expert": "flickr8k",
    "flickr8k-cf": "flickr8k",
    "vatex-eval": "vatex_eval",
    "foil": "foil",
}
"""Folders of published sets of rated captions below ``LMMS_CAPTIONS_DATA``."""
_N_REFERENCES: Final = {"vatex-eval": range(1, 10), "foil": (1, 4)}
"""Numbers of references of sets whose tables have columns for several; the last is the default."""
_RESAMPLES: Final = 1000
_FEW_RESAMPLES: Final = 200
"""Draws of the intervals of sets with tens of thousands of ratings."""


def meta_eval(arguments: Namespace) -> int:
    """Compare metrics with people's ratings."""
    name = arguments.benchmark
    n_references = _check(arguments)
    is_classic, files = not arguments.no_classic, arguments.scores
    if name == "msvd":
        return _msvd(arguments)
    folder = arguments.data or _local_folder(name)
    if name == "foil":
        pairs = read_foil(folder, n_references)
        if arguments.items is not None:
            write_output(items_text(pairs, names_of(pairs)), arguments.items)
            return 0
        report = meta_eval_foil(
            pairs, n_references=n_references, classic=is_classic, score_files=files
        )
        return _show(arguments, report, text_of_pairs(report), "accuracy")
    if name == "vatex-eval":
        rated = read_vatex_eval(folder, n_references)
    else:
        rated = read_flickr8k(folder, name, arguments.ratings)
    if arguments.items is not None:
        write_output(items_text(rated.items), arguments.items)
        return 0
    n_resamples = arguments.resamples or _FEW_RESAMPLES
    report = meta_eval_ratings(
        rated, classic=is_classic, score_files=files, n_resamples=n_resamples
    )
    return _show(arguments, report, text_of(report), "tau_b")


def _check(arguments: Namespace) -> int:
    """Return the number of references.

    Raises:
        SettingsError: If an option is not for the benchmark, or no metric is left.
    """
    name, n_references = arguments.benchmark, arguments.references
    is_msvd = name == "msvd"
    unfit = {
        "--data": is_msvd and arguments.data,
        "--items": is_msvd and arguments.items,
        "--references": n_references and name not in _N_REFERENCES,
        "--gveval": not is_msvd and arguments.gveval,
        "--ratings mean": arguments.ratings == "mean" and name != "flickr8k-expert",
    }
    for option, is_given in unfit.items():
        if is_given:
            raise SettingsError(f"{option}: not for {name}, see --help")
    known = _N_REFERENCES.get(name, ())
    if n_references and n_references not in known:
        expected = ", ".join(map(str, known))
        raise SettingsError(
            f"--references: expected any of {expected} for {name}, got {n_references}"
        )
    asks_judge = is_msvd and _gveval_settings(arguments)
    if arguments.no_classic and not (arguments.scores or arguments.items or asks_judge):
        more = "settings of --gveval, " if is_msvd else ""
        raise SettingsError(
            f"meta-eval: no metric is left to compare with the ratings; give --scores FILE, {more}"
            "or leave --no-classic out"
        )
    return int(n_references or max(known, default=0))


def _gveval_settings(arguments: Namespace) -> tuple[Any, ...]:
    if arguments.gveval is None:
        return _SETTINGS if SESSION.settings().judge else ()
    return tuple(arguments.gveval)


def _msvd(arguments: Namespace) -> int:
    settings = _gveval_settings(arguments)
    try:
        report = meta_eval_msvd(
            classic=not arguments.no_classic,
            settings=settings,
            score_files=arguments.scores,
            sampling=arguments.frames,
            n_resamples=arguments.resamples or _RESAMPLES,
        )
    finally:
        SESSION.close()
    text = text_of(report)
    if arguments.gveval is None and not settings:
        text += "\nG-VEval is left out: LMMS_CAPTIONS_JUDGE names no judge"
    return _show(arguments, report, text, "tau_b")


def _local_folder(benchmark: str) -> Path:
    """Return a set's folder below the root of local data."""
    root = data_settings().data
    if root is None or root == SAMPLE:
        raise SettingsError(
            f"meta-eval {benchmark}: its files are not downloaded; name their folder with --data, "
            f"or put it at {_FOLDERS[benchmark]} below LMMS_CAPTIONS_DATA"
        )
    return Path(root).expanduser() / _FOLDERS[benchmark]


def _show(arguments: Namespace, report: dict[str, Any], text: str, value: str) -> int:
    """Print a report, write it to a file if asked for, and report missing values."""
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
