"""Rows of a caption file, whatever its format: JSONL, JSON or CSV, plain or gzipped."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.judges.surrogates import whole_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# csv's own limit of 131,072 characters is below what a reasoning captioner can write.
_CSV_FIELD_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a caption file."""

    place: str
    """Where the row stands in its file, for messages: ``line 3``."""
    fields: Mapping[str, object]
    """Column name to value, as the file has it."""


def read_rows(path: Path) -> list[Row]:
    """All rows of a caption file, in the file's order.

    Args:
        path: A ``.jsonl``, ``.json`` or ``.csv`` file in UTF-8 (a byte order mark is dropped),
            optionally with ``.gz`` behind. JSON is a list of objects, or one object from video to
            caption or to an object of columns.

    Raises:
        CaptionError: If the file is missing, unreadable, of another format, or broken; the text
            says at which line where the format has lines.
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
    try:
        with _open(path) as stream:
            return list(reader(path, stream))
    except (OSError, EOFError, zlib.error) as error:
        raise CaptionError(
            f"caption file {str(path)!r} cannot be read to its end ({error}); is it cut off? "
            "Copy or write it again"
        ) from error


def _open(path: Path) -> IO[bytes]:
    if path.name.lower().endswith(".gz"):
        # gzip's own class is no IO to the type checker.
        return cast("IO[bytes]", gzip.open(path))
    return path.open("rb")


def _jsonl_rows(path: Path, stream: IO[bytes]) -> Iterator[Row]:
    for number, raw in enumerate(stream, start=1):
        if not raw.strip():
            continue
        place = f"line {number}"
        try:
            value: object = json.loads(whole_json(raw.decode("utf-8-sig")))
        except ValueError as error:
            raise CaptionError(
                f"{path}, {place}: expected one JSON object a line, got {_excerpt(raw)} ({error}); "
                "correct or remove the line"
            ) from error
        yield Row(place, _as_fields(value, path, place))


def _json_rows(path: Path, stream: IO[bytes]) -> Iterator[Row]:
    try:
        value: object = json.loads(whole_json(stream.read().decode("utf-8-sig")))
    except ValueError as error:
        raise CaptionError(
            f"{path}: expected one JSON value, a list of rows or an object from video to caption "
            f"({error}); correct it, or name it .jsonl if it has one object a line"
        ) from error
    if isinstance(value, list):
        for number, entry in enumerate(value, start=1):
            yield Row(f"entry {number}", _as_fields(entry, path, f"entry {number}"))
    elif isinstance(value, dict):
        for video, entry in value.items():
            place = f"entry {video!r}"
            # An entry that is no object is the video's caption, or null where there is none.
            named = {"caption": entry} if entry is None or isinstance(entry, str) else entry
            yield Row(place, {**_as_fields(named, path, place), "video_id": video})
    else:
        raise CaptionError(
            f"{path}: expected a list of rows or an object from video to caption, got {value!r}"
        )


def _csv_rows(path: Path, stream: IO[bytes]) -> Iterator[Row]:
    # Closed here, as a wrapper that is merely dropped closes the file with a warning.
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    with text, _csv_field_limit(_CSV_FIELD_LIMIT):
        reader = csv.DictReader(text, strict=True)
        try:
            for fields in reader:
                place = f"line {reader.line_num}"
                if None in fields:
                    raise CaptionError(
                        f"{path}, {place}: more cells than the {len(reader.fieldnames or ())} "
                        "columns of the header; quote captions that hold commas"
                    )
                yield Row(place, dict(fields))
        except (csv.Error, UnicodeDecodeError) as error:
            raise CaptionError(
                f"{path}, after line {reader.line_num}: expected comma-separated UTF-8 text with a "
                f"header ({error}); correct it, or write it as .jsonl"
            ) from error


@contextmanager
def _csv_field_limit(limit: int) -> Iterator[None]:
    before = csv.field_size_limit(limit)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _as_fields(value: object, path: Path, place: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise CaptionError(
            f"{path}, {place}: expected an object with a video and a caption, got {_excerpt(value)}"
        )
    return value


def _excerpt(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


_READERS: Mapping[str, Callable[[Path, IO[bytes]], Iterator[Row]]] = {
    ".jsonl": _jsonl_rows,
    ".json": _json_rows,
    ".csv": _csv_rows,
}
