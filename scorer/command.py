"""Scoring of Parquet files from the command line: scores, lists of clips and a summary."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.locks import only_one
from lmms_eval_captions.scorer.parquet import (
    FOLDER,
    Shard,
    counted,
    find_shards,
    is_done,
    open_shard,
    origin_of,
    score_files,
    score_here,
    writing,
)
from lmms_eval_captions.scorer.summary import KEPT_FILE, WORST_FILE, is_list, summarise, words_of
from lmms_eval_captions.scorer.table import ScoreSpec

if TYPE_CHECKING:
    from lmms_eval_captions.scorer.on_ray import Cluster

SUMMARY_FILE: Final = "summary.json"
_SUMMARY_FIELDS: Final = frozenset(
    {"protocol", "headline", "n_rows", "n_scored", "n_unscored", "totals", "judged_by"}
)


def score(
    spec: ScoreSpec,
    inputs: Sequence[str],
    folder: Path,
    *,
    worst: float,
    keep: float | None,
    cluster: Cluster | None = None,
) -> int:
    """Score what is not scored yet, and summarise everything.

    Args:
        spec: The spec.
        inputs: Parquet files, folders of them or patterns.
        folder: The output folder.
        worst: Share of the clips in the list of the worst.
        keep: Share of the clips in the list of those to keep, ``None`` for no list.
        cluster: Ray cluster that scores, ``None`` for this process.

    Returns:
        Exit code: 0, or 1 if a shard failed or too much is unscored.

    Raises:
        CaptionsError: If nothing can be scored, or the judge is asked nothing more.
    """
    settings = read_judge_settings()
    files_of = _score_files(inputs, folder)
    with only_one(folder, named=folder, doing="scores", option="--out"):
        shards: list[Shard] = []
        failures: dict[Path, str] = {}
        for path, scores in files_of.items():
            try:
                shards.append(open_shard(path, scores, spec))
            except DataError as error:
                failures[path] = str(error)
        due = [shard for shard in shards if not is_done(shard, ask_again=settings.ask_again)]
        _say(_plan(shards, due, len(failures)))
        for why in failures.values():
            _say(why)
        if due:
            failures |= _scored(due, spec, cluster)
        files = [shard.scores for shard in shards if shard.path not in failures]
        if not files:
            first = next(iter(failures.values()))
            raise DataError(f"no file of {len(files_of):,} could be scored; the first: {first}")
        summary = summarise(
            files,
            spec,
            folder,
            worst=worst,
            keep=keep,
            max_unscored=settings.max_unscored,
        )
        for name, listed in ((WORST_FILE, summary["worst"]), (KEPT_FILE, summary["kept"])):
            if listed is None:
                (folder / name).unlink(missing_ok=True)
        failed = [{"file": str(path), "why": why} for path, why in failures.items()]
        with writing(folder / SUMMARY_FILE):
            document = json.dumps({**summary, "failed": failed}, indent=1)
            write_atomically(folder / SUMMARY_FILE, document.encode())
    lines = [*words_of(summary), *(f"not scored: {why}" for why in failures.values())]
    lines.append(f"scores of each clip: {folder / FOLDER}")
    sys.stdout.write("\n".join(lines) + "\n")
    is_short = summary["n_rows"] > 0 and summary["totals"][summary["headline"]] is None
    return 1 if failures or is_short else 0


def _score_files(inputs: Sequence[str], folder: Path) -> dict[Path, Path]:
    """Return the files to score, each with the path of its scores.

    Files that this command has written in an earlier run are not scored.

    Raises:
        SettingsError: If there are none, or a file would be replaced that is not ours.
    """
    lists = {(folder / name).resolve() for name in (WORST_FILE, KEPT_FILE)}
    own = (folder / FOLDER).resolve()
    _require_ours((folder / name for name in (WORST_FILE, KEPT_FILE)), is_list)
    _require_ours([folder / SUMMARY_FILE], _is_summary)
    found = dict.fromkeys(path for each in inputs for path in find_shards(each))
    paths = [
        path
        for path in found
        if not (path in lists and is_list(path)) and not (own in path.parents and _is_scores(path))
    ]
    if not paths:
        raise SettingsError("--in: expected files to score, got those that this command wrote")
    files = score_files(paths, folder)
    _require_ours(files.values(), _is_scores)
    return files


def _require_ours(paths: Iterable[Path], is_ours: Callable[[Path], bool]) -> None:
    for path in paths:
        # A link that leads nowhere is the user's, too; an empty file may be left by a power cut.
        is_empty = path.is_file() and path.stat().st_size == 0
        if os.path.lexists(path) and not is_ours(path) and not is_empty:
            raise SettingsError(
                f"--out: {path} was not written by this command, which would write over it; name "
                "another folder with --out, or move the file"
            )


def _is_scores(path: Path) -> bool:
    return "spec" in (origin_of(path) or {})


def _is_summary(path: Path) -> bool:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.keys() >= _SUMMARY_FIELDS


def _scored(shards: Sequence[Shard], spec: ScoreSpec, cluster: Cluster | None) -> dict[Path, str]:
    """Score shards; return the path of each that failed, to why."""

    def on_done(shard: Shard, n_unasked: int) -> None:
        more = f", {n_unasked:,} could not be asked about" if n_unasked else ""
        _say(f"{shard.path}: {counted(shard.n_rows - n_unasked, 'row')} scored{more}")

    if cluster is None:
        return score_here(shards, spec, on_done)
    from lmms_eval_captions.scorer.on_ray import score_on_ray

    return score_on_ray(shards, spec, on_done, cluster)


def _plan(shards: Sequence[Shard], due: Sequence[Shard], n_failed: int) -> str:
    n_rows, n_due = (sum(shard.n_rows for shard in some) for some in (shards, due))
    words = f"{counted(n_rows, 'row')} in {counted(len(shards), 'file')}"
    if len(due) < len(shards):
        words += (
            f", {n_due:,} of them in {counted(len(due), 'file')} to score, the others are scored"
        )
    return words + (f"; {counted(n_failed, 'file')} cannot be scored" if n_failed else "")


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
