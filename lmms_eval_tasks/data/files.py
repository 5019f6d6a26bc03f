"""Benchmark files and videos from where the settings say: local data, the sample or the hub."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

from loguru import logger

from lmms_eval_captions.judges.errors import DataError, NoVideosError
from lmms_eval_captions.judges.files import (
    BadLineError,
    json_lines,
    parse_json,
    read_whole,
    whole,
)
from lmms_eval_captions.judges.settings import SAMPLE, DataSettings
from lmms_eval_captions.lmms_eval_tasks.data.hub import fetch_file, fetch_videos
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.model_wrappers.video.endings import (
    RARE_VIDEO_ENDINGS,
    VIDEO_ENDINGS,
    without_ending,
)

T = TypeVar("T")
Row = dict[str, Any]
"""Row of an official file, or a document made of it."""

SPLIT_MANIFEST: Final = "split.json"
"""File in a root of data that holds only some of a benchmark's questions."""
SPLIT_DATA: Final = "data"
"""Field of the manifest: the ``LMMS_CAPTIONS_DATA`` that the split was made from and that has its
clips; ``null`` for the hub."""
_N_SHOWN: Final = 5
_ENDINGS: Final = VIDEO_ENDINGS | RARE_VIDEO_ENDINGS
_ARCHIVE_EXTENSIONS: Final = (".tar", ".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tar.xz")


def find_file(settings: DataSettings, source: Source, name: str) -> Path:
    """Return a file below a benchmark's folder, downloaded if there is no local data.

    Locally the same name with ``.gz`` is also taken.

    Raises:
        DataError: If the file is missing or cannot be downloaded; the message says where it was
            looked for and how to get it.
    """
    root = local_root(settings)
    if root is None:
        source.require_repo()
        return fetch_file(source, name)
    path = root / source.benchmark / name
    for candidate in (path, path.with_name(f"{path.name}.gz")):
        if candidate.is_file():
            return candidate
    if (root / SPLIT_MANIFEST).is_file():
        raise DataError(
            f"{source.benchmark}: no file {path}: this split has no question of this file: leave "
            f"its task out ({root / SPLIT_MANIFEST} says how many questions there are)"
        )
    raise DataError(
        f"{source.benchmark}: no file {path} (or {path.name}.gz); LMMS_CAPTIONS_DATA is "
        f"{settings.data}. {source.advice()}"
    )


def find_video(settings: DataSettings, source: Source, video_id: str) -> Path:
    """Return the file of a video, named with or without folders or an ending.

    Folders are read once per process. The first call without local data downloads and unpacks all
    of the benchmark's archives. A split without videos takes those of the data that it was made
    from.

    Raises:
        DataError: If the video is missing; the message says where it was looked for and how to
            get it.
        NoVideosError: If there is no video at all.
    """
    folder = _video_folder(settings, source)
    videos, name = index_videos(folder), PurePosixPath(whole(video_id)).name
    for spelling in (whole(video_id), name, without_ending(name, _ENDINGS)):
        if spelling in videos:
            return videos[spelling]
    has_videos, content = _content(folder)
    raise (DataError if has_videos else NoVideosError)(
        f"{source.benchmark}: no video {video_id!r} in {folder} ({content}), whatever its ending. "
        f"{source.advice()}"
    )


def list_videos(settings: DataSettings, source: Source) -> list[str]:
    """Return the paths of all local videos below their folder, sorted; nothing is downloaded.

    A file with a rare ending (``.bin``, ``.ogg``) next to a clip of its name may be the clip's
    sound and is left out. Lone surrogates in a name are U+FFFD.

    Raises:
        DataError: If there is no root of local data.
        NoVideosError: If there is no video.
    """
    if local_root(settings) is None:
        source.require_repo()
        raise DataError(f"{source.benchmark}: no local data. {source.advice()}")
    folder = _video_folder(settings, source)
    files = files_below(folder)
    clips = [file for file in files if file.suffix.lower() in VIDEO_ENDINGS]
    stems = {file.with_suffix("") for file in clips}
    clips += [
        file
        for file in files
        if file.suffix.lower() in RARE_VIDEO_ENDINGS and file.with_suffix("") not in stems
    ]
    if not clips:
        raise NoVideosError(
            f"{source.benchmark}: no video in {folder} ({_content(folder)[1]}). {source.advice()}"
        )
    return sorted({whole(file.relative_to(folder).as_posix()) for file in clips})


def local_root(settings: DataSettings) -> Path | None:
    """Return the root of local data, which may be the sample's, or ``None`` for the hub.

    Raises:
        DataError: If the root is not a folder.
    """
    if settings.data is None:
        return None
    if settings.data == SAMPLE:
        from lmms_eval_captions.lmms_eval_tasks.sample import sample_root

        return sample_root(settings.cache)
    root = Path(settings.data).expanduser()
    if not root.is_dir():
        raise DataError(
            f"LMMS_CAPTIONS_DATA: no folder {settings.data!r}; expected the root of local "
            f"benchmark data, {SAMPLE!r}, or no value, which downloads from the Hugging Face hub"
        )
    return root


def _video_folder(settings: DataSettings, source: Source) -> Path:
    root = local_root(settings)
    if root is not None:
        folder = root / source.video_folder
        if folder.is_dir() or not (root / SPLIT_MANIFEST).is_file():
            return folder
        return _video_folder(replace(settings, data=_data_of_split(root)), source)
    try:
        source.require_repo()
        return fetch_videos(source, settings.cache)
    except DataError as error:
        raise NoVideosError(str(error)) from error


def _data_of_split(root: Path) -> str | None:
    path = root / SPLIT_MANIFEST
    try:
        data = json.loads(path.read_bytes())[SPLIT_DATA]
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise DataError(
            f"{path}: expected one JSON object with a field {SPLIT_DATA!r} ({error!r}); "
            "make the split again"
        ) from error
    if data is None or data == SAMPLE:
        return data  # type: ignore[no-any-return]
    if isinstance(data, str) and Path(data).is_dir() and Path(data).resolve() != root.resolve():
        return data
    raise NoVideosError(
        f"{path}: expected the root of the data that hold this split's clips as {SPLIT_DATA!r}, "
        f"got {data!r:.200}; correct it there (null stands for the Hugging Face hub), or put the "
        f"clips below {root}"
    )


def read_jsonl(path: Path) -> list[Row]:
    """Return the objects of a JSON-lines file in UTF-8, plain or gzipped, without empty lines.

    Raises:
        DataError: If the file is missing, cut off, too large when unpacked, or has a line that is
            not an object; the message names the line.
    """
    return [row for _, row in read_located(path)]


def read_located(path: Path) -> list[tuple[str, Row]]:
    """Do as :func:`read_jsonl`, and return each object with its file and line, for messages."""
    rows: list[tuple[str, Row]] = []
    try:
        for number, value in json_lines(path):
            where = f"{path}, line {number}"
            if not isinstance(value, dict):
                raise DataError(f"{where}: expected a JSON object, got {value!r:.80}")
            rows.append((where, value))
    except BadLineError as error:
        raise DataError(
            f"{path}, line {error.number}: expected one JSON object per line ({error}); was it cut "
            "off? Download it again"
        ) from error
    except (OSError, ValueError) as error:
        last = rows[-1][0] if rows else f"{path}, line 0"
        raise DataError(f"{last}: no more can be read ({error}); download it again") from error
    return rows


def read_json(path: Path, form: type[T], under: str = "") -> T:
    """Return the list or object of a JSON file, or the one in a field of its object.

    Raises:
        DataError: If the file cannot be read or is of another form.
    """
    try:
        value = parse_json(read_whole(path))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: expected one JSON object or list ({error}); download it again"
        ) from error
    inner: object = value
    if under:
        inner = value.get(under) if isinstance(value, dict) else None
    if not isinstance(inner, form):
        where = f" under {under!r}" if under else ""
        name = "object" if form is dict else "list"
        raise DataError(f"{path}: expected a JSON {name}{where}, got {value!r:.80}")
    return inner


def read_clips(
    path: Path, read: Callable[[Any], Row], *, expected: str, under: str = ""
) -> list[Row]:
    """Return what ``read`` makes of each row of JSON lines or of a JSON list.

    Raises:
        DataError: See :func:`usable`.
    """
    rows: Iterable[tuple[str, Any]] = (
        read_located(path)
        if ".jsonl" in path.suffixes
        else ((f"{path}, row {n}", row) for n, row in enumerate(read_json(path, list, under)))
    )
    return usable(((where, partial(read, row)) for where, row in rows), expected=expected)


def usable(
    readers: Iterable[tuple[str, Callable[[], T]]], *, expected: str, of: str = "rows"
) -> list[T]:
    """Return what can be read; the rest is left out with a warning that names the first.

    ``readers`` are functions, each with the location of what it reads.

    Raises:
        DataError: If nothing can be used.
    """
    found, unusable = [], []
    for where, read in readers:
        try:
            found.append(read())
        except (LookupError, TypeError, ValueError, AttributeError, SyntaxError, MemoryError) as e:
            unusable.append(f"{where}: expected {expected}, got {e!r:.200}")
    if unusable:
        n = len(unusable) + len(found)
        words = f"{len(unusable):,} of {n:,} {of} cannot be used, first {unusable[0]}"
        if not found:
            raise DataError(words)
        logger.warning("{}", words)
    return found


Keep = Callable[[str, str], bool]
"""Tells if a question is kept, from its video and its text. It is called once for each question, in
the order in which the benchmark asks about a video: a text may occur more than once."""


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A benchmark's official files of questions, from which smaller ones of that form are made."""

    name: Callable[[Mapping[str, str]], str]
    """Path below the benchmark's folder, from ``Task.fields``."""
    select: Callable[[Path, Keep], str]
    """The text of such a file with only the questions that are kept, without videos that have none
    left. The benchmark has read the file before; raises ``DataError`` if that fails now."""


def read_pairs(
    value: object,
    *optional: str,
    where: str,
    form: str = "a list of question-answer pairs",
) -> list[dict[str, str]]:
    """Return each ``question`` with its ``answer`` and optional texts, which are empty if missing.

    Raises:
        DataError: If they are not of that form; the message begins with ``where``.
    """
    if not isinstance(value, list):
        raise DataError(f"{where}: expected {form}, got {value!r:.80}")
    pairs = []
    for number, row in enumerate(value, 1):
        at = f"{where}, question {number}"
        if not isinstance(row, dict) or not {"question", "answer"} <= set(row):
            raise DataError(f"{at}: expected 'question' and 'answer', got {row!r:.80}")
        pair = {name: row.get(name, "") for name in ("question", "answer", *optional)}
        if not all(isinstance(text, str) for text in pair.values()):
            raise DataError(f"{at}: expected text, got {pair!r:.120}")
        pairs.append(pair)
    return pairs


def of_json_lines(
    name: Callable[[Mapping[str, str]], str],
    select: Callable[[Sequence[Row], Keep], Iterator[Row]],
) -> QuestionFile:
    """Return the question files of a benchmark in JSON lines, from a selection of the lines."""

    def select_text(path: Path, keep: Keep) -> str:
        rows = select(read_jsonl(path), keep)
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)

    return QuestionFile(name, select_text)


def text_of(row: Mapping[str, object], name: str, where: str) -> str:
    """Return a field of a row that must be a text with a word.

    Raises:
        DataError: If it is not; the message begins with ``where``.
    """
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}{name}: expected text, got {value!r:.60}")
    return value


def check_categories(path: Path, categories: Iterable[str], known: Collection[str]) -> None:
    """Log the questions of a file whose categories the paper does not name.

    Raises:
        DataError: If there is no question.
    """
    counts = Counter(categories)
    if not counts:
        raise DataError(f"{path}: expected at least one video with questions, the file has none")
    others = Counter({name: n for name, n in counts.items() if name not in known})
    if others:
        logger.warning(
            "{}: {:,} questions are of categories that the paper does not name, and count overall "
            "and in no group of the paper: {}",
            path,
            others.total(),
            ", ".join(f"{name} ({n:,})" for name, n in others.most_common(_N_SHOWN)),
        )


@cache
def index_videos(folder: Path) -> dict[str, Path]:
    """Return every spelling of the name of every video below a folder, and its file.

    A spelling is the path below the folder, the file's name, or the name without a video ending. If
    two files share one, the first in alphabetical order gets it, and files with a rare ending, such
    as a clip's sound, come last.
    """
    files = sorted(files_below(folder), key=lambda file: file.suffix.lower() in RARE_VIDEO_ENDINGS)
    index: dict[str, Path] = {}
    for names in (
        [file.relative_to(folder).as_posix() for file in files],
        [file.name for file in files],
        [without_ending(file.name, _ENDINGS) for file in files],
    ):
        for name, file in zip(names, files, strict=True):
            index.setdefault(whole(name), file)
    return index


def files_below(folder: Path) -> list[Path]:
    """Return every file below a folder, without hidden ones; links are followed."""
    files: list[Path] = []
    seen: set[str] = set()
    # Shards are often linked in from another disk; ``seen`` ends loops.
    for parent, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(parent)
        folders[:] = [] if real in seen else sorted(f for f in folders if not f.startswith("."))
        if real not in seen:
            files += [Path(parent, name) for name in sorted(names) if not name.startswith(".")]
        seen.add(real)
    return files


@cache
def _content(folder: Path) -> tuple[bool, str]:
    """Return if a folder has videos, and what it has in words."""
    if not folder.is_dir():
        return False, "there is no such folder"
    files = set(index_videos(folder).values())
    packed = sorted(f.name for f in files if f.name.lower().endswith(_ARCHIVE_EXTENSIONS))
    text = f"{len(files) - len(packed):,} files"
    if packed:
        text += f"; archives not yet unpacked: {', '.join(packed[:5])}"
    return len(files) > len(packed), text
