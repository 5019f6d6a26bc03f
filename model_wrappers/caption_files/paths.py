"""Caption files that ``path=`` names: one, those of a folder or pattern, or several of these."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.model_wrappers.caption_files.columns import listed
from lmms_eval_captions.model_wrappers.caption_files.tables import ENDINGS

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_FILES: Final = 10_000
_PATTERN: Final = re.compile(r"[*?\[]")
_NOT_CAPTIONS: Final = re.compile(
    r".+_(results|judging|breakdown_.+)\.json|.+_(samples|verdicts)_.+", re.I
)
"""Files that lmms-eval and this package write into a folder of results."""
_RANK_FILE: Final = re.compile(r"rank-(\d{1,6})-of-(\d{1,6})\.jsonl(\.gz)?")
_LOG_NAME: Final = re.compile(r"(?P<date>.+?)_samples_(?P<task>.+)\.jsonl(\.gz)?", re.IGNORECASE)


def files_of(text: str) -> list[Path]:
    """Return the caption files that ``path=`` names, each once, in its order, a folder's by name.

    It is a file, a folder, a pattern such as ``captions/*.jsonl``, or several of these joined by
    plus signs (commas are lmms-eval's own); ``~`` is the home folder. A path that exists as a whole
    is itself, whatever signs are in it.
    """
    paths: dict[Path, None] = {}
    is_one = Path(text).expanduser().exists()
    for part in filter(None, [text] if is_one else map(str.strip, text.split("+"))):
        path = Path(part).expanduser()
        found = [path]
        if not path.exists() and _PATTERN.search(part):
            # ``Path.glob`` takes no pattern from the root.
            found = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
            if not found:
                raise CaptionError(
                    f"path={text!r}: no file is like {part!r}; correct the pattern, and quote it, "
                    "so that your shell leaves it as it is"
                )
        for match in found:
            files = caption_files_in(match) if match.is_dir() else [match]
            if not files:
                raise CaptionError(
                    f"{match}: expected caption files ({', '.join(ENDINGS)}, or one of these and "
                    ".gz) in the folder, found none; give a folder of sample logs by itself, "
                    "without others"
                )
            paths |= dict.fromkeys(files)
            if len(paths) > _MOST_FILES:
                raise CaptionError(f"path={text!r}: more than {_MOST_FILES:,} files; name fewer")
    return list(paths)


def caption_files_in(folder: Path) -> list[Path]:
    """Return files directly in a folder that may hold captions, by name."""
    return [
        path
        for path in sorted(folder.iterdir())
        if path.name.lower().removesuffix(".gz").endswith(ENDINGS)
        and not path.name.startswith(".")
        and not _NOT_CAPTIONS.fullmatch(path.name)
        and path.is_file()
    ]


def rank_file(rank: int, world_size: int) -> str:
    """Return the name of the file of one process."""
    return f"rank-{rank}-of-{world_size}.jsonl"


def absent_ranks(text: str) -> str:
    """Return a sentence on the processes that have no file below ``path=``; empty if all have one.

    A process that was given no caption has no file, so that this explains captions that are
    missing, and is not an error by itself.
    """
    try:
        names = [path.name for path in files_of(text)]
    except (CaptionError, OSError):
        return ""
    present: dict[int, set[int]] = defaultdict(set)
    for name in names:
        if parts := _RANK_FILE.fullmatch(name):
            present[int(parts[2])].add(int(parts[1]))
    sentences = []
    for n_ranks, ranks in sorted(present.items()):
        absent = [str(rank) for rank in range(n_ranks) if rank not in ranks]
        if absent:
            named = ", ".join(absent[:16]) + (" and more" if len(absent) > 16 else "")
            sentences.append(
                f"of {n_ranks} processes that captioned, {len(absent)} have no file there: "
                f"rank {named}"
            )
    return "; ".join(sentences)


def has_logs(folder: Path) -> bool:
    """Return if sample logs lie directly in a folder."""
    return bool(_logs(folder.iterdir()))


def newest_logs(folder: Path) -> dict[str, Path]:
    """Return the newest sample log of each task of one model, below its results folder."""
    # Logs right here are the ones meant; those further down may belong to other models.
    logs = _logs(folder.iterdir()) or _logs(folder.rglob("*"))
    parents = sorted({str(path.parent) for path in logs})
    if not logs:
        raise CaptionError(
            f"{folder}: expected lmms-eval sample logs (<date>_samples_<task>.jsonl, written with "
            "--log_samples) or caption files, found none; or give one caption file as path="
        )
    if len(parents) > 1:
        raise CaptionError(
            f"{folder}: sample logs of {len(parents)} models, in {listed(parents)}; give one of "
            "these"
        )
    return {task: path for path, (_, task) in sorted(logs.items(), key=lambda log: log[0].name)}


def logs_of_run(folder: Path, date: str) -> dict[str, Path]:
    """Return the sample log of each task of one run, in the model's own results folder.

    ``date`` is when the run was, as in front of the names of its files.
    """
    logs = _logs(folder.iterdir())
    return {task: path for path, (date_of_log, task) in logs.items() if date_of_log == date}


def _logs(paths: Iterable[Path]) -> dict[Path, tuple[str, str]]:
    """Return the paths that are sample logs, with the date and the task in their names."""
    matches = ((path, _LOG_NAME.fullmatch(path.name)) for path in paths)
    return {path: (match["date"], match["task"]) for path, match in matches if match}
