"""Rows of a caption file, whatever its format: JSONL, JSON, CSV, TSV or Parquet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loguru import logger

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.judges.files import BadLineError, json_lines, parse_json, read_whole
from lmms_eval_captions.model_wrappers.caption_files.tables import open_csv, parquet_rows
from lmms_eval_captions.model_wrappers.caption_files.video_keys import VIDEO_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class CaptionRow:
    """One row of a caption file."""

    place: str
    """Where the row stands in its file, for messages: ``line 3``."""
    fields: Mapping[str, object]
    """Column name to value, as the file has it."""


def read_rows(path: Path) -> list[CaptionRow]:
    """All rows of a caption file, in the file's order.

    Args:
        path: A ``.jsonl``, ``.json``, ``.csv`` or ``.tsv`` file in UTF-8 (a byte order mark is
            dropped), optionally gzipped and with ``.gz`` behind, or a ``.parquet`` file. JSON is a
            list of objects, or one object from video to caption or to an object of columns. The
            columns of ``.csv`` are separated by commas, semicolons or tabs.

    Raises:
        CaptionError: If the file is missing, unreadable, of another format, broken, or beyond the
            bounds of ``bounded_files``; the text says at which line where the format has
            lines.
    """
    reader = _READERS.get(Path(path.name.lower().removesuffix(".gz")).suffix)
    if not path.exists():
        raise CaptionError(
            f"caption file {str(path)!r} does not exist; check path= of --model_args"
        )
    if reader is None:
        raise CaptionError(
            f"caption file {str(path)!r}: expected a name ending in {', '.join(_READERS)} (or one "
            "of these and .gz); rename it after its format, or convert it"
        )
    rows: list[CaptionRow] = []
    try:
        rows.extend(reader(path))
    except (OSError, ValueError) as error:
        raise CaptionError(
            f"caption file {str(path)!r} cannot be read to its end ({error}); is it cut off? "
            "Copy or write it again"
        ) from error
    return rows


def _jsonl_rows(path: Path) -> Iterator[CaptionRow]:
    try:
        for number, value in json_lines(path):
            place = f"line {number}"
            yield CaptionRow(place, _as_fields(value, path, place))
    except BadLineError as error:
        raise CaptionError(
            f"{path}, line {error.number}: expected one JSON object per line, got "
            f"{_excerpt(error.raw[:100])} ({error}); correct or remove the line"
        ) from error


def _json_rows(path: Path) -> Iterator[CaptionRow]:
    raw = read_whole(path)
    repeated: list[str] = []
    try:
        value = parse_json(raw, repeated)
    except ValueError as error:
        raise CaptionError(
            f"{path}: expected one JSON value, a list of rows or an object from video to caption "
            f"({error}); correct it, or name it .jsonl if it has one object per line"
        ) from error
    if repeated:
        logger.warning(
            f"{path}: {len(repeated)} keys are there more than once in an object (the last one "
            f"counts), such as {_excerpt(repeated[0])}"
        )
    if isinstance(value, list):
        for number, entry in enumerate(value, start=1):
            yield CaptionRow(f"entry {number}", _as_fields(entry, path, f"entry {number}"))
    elif isinstance(value, dict):
        for video, entry in value.items():
            place = f"entry {_excerpt(video)}"
            # An entry that is no object is the video's caption, or null where there is none.
            named = {"caption": entry} if entry is None or isinstance(entry, str) else entry
            yield CaptionRow(place, {**_as_fields(named, path, place), "video_id": video})
    else:
        raise CaptionError(
            f"{path}: expected a list of rows or an object from video to caption, got "
            f"{_excerpt(value)}"
        )


def _csv_rows(path: Path, separators: str = ",;\t") -> Iterator[CaptionRow]:
    try:
        with open_csv(path, separators=separators, expected=VIDEO_KEYS) as table:
            for fields, further in table:
                place = f"line {table.line}"
                if further:
                    raise CaptionError(
                        f"{path}, {place}: more cells than the {len(table.columns)} columns of the "
                        f"header; quote captions that hold {table.separator!r}"
                    )
                yield CaptionRow(place, fields)
    except ValueError as error:
        raise CaptionError(
            f"{path}, {error}; expected UTF-8 text with a header, its columns separated by one of "
            f"{separators!r}: correct it, or write it as .jsonl"
        ) from error


def _parquet_rows(path: Path) -> Iterator[CaptionRow]:
    for number, fields in enumerate(parquet_rows(path), start=1):
        yield CaptionRow(f"row {number}", fields)


def _as_fields(value: object, path: Path, place: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise CaptionError(
            f"{path}, {place}: expected an object with a video and a caption, got {_excerpt(value)}"
        )
    return value


def _excerpt(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


_READERS: Mapping[str, Callable[[Path], Iterator[CaptionRow]]] = {
    ".jsonl": _jsonl_rows,
    ".json": _json_rows,
    ".csv": _csv_rows,
    ".tsv": partial(_csv_rows, separators="\t"),
    ".parquet": _parquet_rows,
}
ENDINGS: Final = tuple(_READERS)
"""How the names of caption files end, before ``.gz``."""
