"""Scoring of Parquet files from the command line: scores, lists of clips and a summary."""

from __future__ import annotations

import glob
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.locks import only_one
from lmms_eval_captions.scorer.parquet import (
    Shard,
    counted,
    is_done,
    new_file,
    open_shard,
    origin_of,
    score_here,
    writing,
)
from lmms_eval_captions.scorer.summary import LIST_FILES, summarise, words_of
from lmms_eval_captions.scorer.table import ScoreSpec

if TYPE_CHECKING:
    from lmms_eval_captions.scorer.on_ray import Cluster

FOLDER: Final = "scores"
"""Folder in the output folder with a file for each shard."""
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
        shares = {"worst": worst, "kept": keep}
        summary = summarise(files, spec, folder, shares, max_unscored=settings.max_unscored)
        failed = [{"file": str(path), "why": why} for path, why in failures.items()]
        path = folder / SUMMARY_FILE
        with new_file(path) as file, writing(path):
            file.write(json.dumps({**summary, "failed": failed}, indent=1).encode())
    lines = [*words_of(summary), *(f"not scored: {why}" for why in failures.values())]
    lines.append(f"scores of each clip: {folder / FOLDER}")
    sys.stdout.write("\n".join(lines) + "\n")
    is_short = summary["n_rows"] > 0 and summary["totals"][summary["headline"]] is None
    return 1 if failures or is_short else 0


def _score_files(inputs: Sequence[str], folder: Path) -> dict[Path, Path]:
    """Return the files to score, except our own, each with the path of its scores.

    :class:`SettingsError` if there are none, two files of scores would be one, or a file that is
    not ours would be replaced.
    """
    lists = [folder / name for name in LIST_FILES.values()]
    _require_ours(lists, _is_ours)
    _require_ours([folder / SUMMARY_FILE], _is_summary)
    outputs = {(folder / FOLDER).resolve(), *(path.resolve() for path in lists)}
    paths = [
        path
        for path in dict.fromkeys(path for pattern in inputs for path in _find(pattern))
        if outputs.isdisjoint((path, *path.parents)) or not _is_ours(path)
    ]
    if not paths:
        raise SettingsError("--in: expected files to score, got those that this command wrote")
    common = Path(os.path.commonpath([path.parent for path in paths]))
    given, files = set(paths), dict[Path, Path]()
    taken: dict[Path, Path] = {}
    for path in paths:
        name = path.relative_to(common)
        if name.suffix != ".parquet":
            name = name.with_name(f"{name.name}.parquet")
        files[path] = scores = folder / FOLDER / name
        other = taken.setdefault(scores.resolve(), path)
        if other != path:
            raise SettingsError(
                f"--in: the scores of {other} and of {path} would be one file, {scores}; score "
                "them into different folders"
            )
        if scores.resolve() in given:
            raise SettingsError(
                f"--out: the scores of {path} would replace {scores}, which is to be scored; name "
                "another folder"
            )
    _require_ours(files.values(), _is_ours)
    return files


def _find(pattern: str) -> list[Path]:
    """Return files by a name, a folder or a pattern, sorted, with links resolved; at least one."""
    path = Path(pattern).expanduser()
    if path.is_dir():
        found = sorted(path.glob("*.parquet"))
    elif path.exists():
        found = [path]
    else:
        # A pattern may be absolute, which Path.glob does not take.
        found = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207
    files = [each.resolve() for each in found if each.is_file()]
    if not files:
        raise SettingsError(f"--in: expected Parquet files, none is there of {pattern!r}")
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


def _is_ours(path: Path) -> bool:
    return origin_of(path) is not None


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
