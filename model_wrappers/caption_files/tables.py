"""Rows of caption files and other tables: JSONL, JSON, CSV, TSV or Parquet.

Errors are as in :mod:`lmms_eval_captions.judges.files`.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from loguru import logger

from lmms_eval_captions.judges import files
from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.judges.files import BadLineError, json_lines, parse_json, read_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

VIDEO_KEYS = ("video_id", "video", "video_dir", "video_name", "vname")
"""Columns that may name the video, of a file's row or of a task's document; the first wins."""
CAPTION_KEYS = ("caption", "model_generation", "prediction")
"""Columns that may hold a caption of no particular aspect; the first that is not null wins."""
_OTHER_VIDEO_KEYS: Final = (
    "video_path", "video_file", "clip_id", "clip", "file_name", "image_id", "id",
)  # fmt: skip
"""Columns that name the video in files without one of ``VIDEO_KEYS``."""
_LONGEST_CELL: Final = 2**31 - 1
"""The csv module's own limit of 131,072 characters is below what a reasoning captioner writes."""


def csv_rows(
    path: Path, separators: str, expected: Collection[str]
) -> Iterator[tuple[int, dict[str, str | None], list[str]]]:
    """Yield the rows of separated text in UTF-8 with a header.

    The separator is the one that makes the most of the expected columns of the header, then the
    most columns. A row is its line number, its cells by column (``None`` for a missing one), and
    the cells beyond the header's. A ``ValueError`` names the line.
    """
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.DictReader(iter(()))
    with (
        files.open_file(path) as stream,
        io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as lines,
    ):
        try:
            header = next(lines, "")

            def fit(separator: str) -> tuple[int, int]:
                columns = next(csv.reader([header], delimiter=separator), [])
                return len(set(columns) & set(expected)), len(columns)

            separator = max(separators, key=fit)
            reader = csv.DictReader(chain((header,), lines), strict=True, delimiter=separator)
            names = Counter(filter(None, reader.fieldnames or ()))
            if repeated := [name for name, n in names.items() if n > 1]:
                raise ValueError(f"it has two columns {repeated[0]!r:.80}")  # noqa: TRY301 (with its line)
            for row in reader:
                # The key of further cells is None, whatever the type says.
                further = cast("dict[str | None, list[str]]", row).pop(None, [])
                yield reader.line_num, row, further
        except (csv.Error, ValueError) as error:
            raise ValueError(f"after line {reader.line_num}: {error}") from error


def parquet_rows(path: Path) -> Iterator[dict[str, object]]:
    """Yield the rows of a file by column; values that are neither text nor numbers are ``None``.

    It is a ``ValueError`` if the file is damaged, or its texts have more than ``MOST_BYTES``.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        with files.open_file(path) as stream, pyarrow.parquet.ParquetFile(stream) as file:
            names = [field.name for field in file.schema_arrow if _is_plain(field.type)]
            nothing = dict.fromkeys(file.schema_arrow.names)
            n_letters = 0
            for batch in file.iter_batches(1024, columns=names, use_threads=False):
                for row in batch.to_pylist():
                    n_letters += sum(len(text) for text in row.values() if isinstance(text, str))
                    if n_letters > files.MOST_BYTES:
                        raise ValueError(f"its texts have more than {files.MOST_BYTES >> 30} GiB")
                    yield {**nothing, **row}
    except (pyarrow.ArrowException, MemoryError) as error:
        raise ValueError(f"it is no Parquet, or damaged: {' '.join(str(error).split())}") from error


def _is_plain(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    from pyarrow import types

    value = kind.value_type if types.is_dictionary(kind) else kind
    is_text = types.is_string(value) or types.is_large_string(value)
    return bool(is_text or types.is_integer(kind) or types.is_floating(kind))


class CaptionRow(NamedTuple):
    """One row of a caption file."""

    place: str
    """Position of the row in its file, for messages: ``line 3``."""
    fields: Mapping[str, object]
    """Column name to value, as the file has it."""


def read_rows(path: Path, video_column: str | None = None) -> list[CaptionRow]:
    """Return all rows of a caption file, in the file's order.

    It is a ``.jsonl``, ``.json``, ``.csv`` or ``.tsv`` file in UTF-8, optionally gzipped and with
    ``.gz`` behind, or a ``.parquet`` file. JSON is a list of objects, or one object from video to
    caption or to an object of columns. Columns that are spelled nearly as known ones (``Video ID``)
    are there under the known name (``video_id``), too.
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
        rows = list(reader(path))
    except (OSError, ValueError) as error:
        raise CaptionError(
            f"caption file {str(path)!r} cannot be read to its end ({error}); is it cut off? "
            "Copy or write it again"
        ) from error
    if video_column is not None and not any(video_column in row.fields for row in rows):
        columns = ", ".join(map(repr, rows[0].fields)) if rows else "none"
        raise CaptionError(f"{path}: no column {video_column!r}; its columns are {columns}")
    own = {} if video_column is None else {VIDEO_KEYS[0]: video_column}
    known: list[CaptionRow] = []
    for row in rows:
        columns_by_key = _known_columns(tuple(row.fields)) | own
        more = {key: row.fields.get(column) for key, column in columns_by_key.items()}
        known.append(CaptionRow(row.place, {**row.fields, **more}) if more else row)
    return known


@lru_cache(maxsize=64)
def _known_columns(columns: tuple[str, ...]) -> dict[str, str]:
    """Return known columns to those that are spelled nearly so; none for logs of lmms-eval.

    >>> _known_columns(("ID", "Video Path", "Caption"))
    {'video_id': 'Video Path', 'caption': 'Caption'}
    """
    if "doc_id" in columns:
        return {}
    by_plain = {_plain(column): column for column in reversed(columns)}
    found = {
        key: by_plain[_plain(key)]
        for key in (*CAPTION_KEYS, "aspect", "task")
        if key not in columns and _plain(key) in by_plain
    }
    if set(columns).isdisjoint(VIDEO_KEYS):
        for key in (*VIDEO_KEYS, *_OTHER_VIDEO_KEYS):
            if _plain(key) in by_plain:
                return {VIDEO_KEYS[0]: by_plain[_plain(key)], **found}
    return found


def _plain(column: str) -> str:
    return re.sub(r"[\W_]+", "", column).lower()


def _jsonl_rows(path: Path) -> Iterator[CaptionRow]:
    try:
        for number, value in json_lines(path):
            yield _row(path, f"line {number}", value)
    except BadLineError as error:
        raise CaptionError(
            f"{path}, line {error.number}: expected one JSON object per line, got "
            f"{_excerpt(error.raw[:100])} ({error}); correct or remove the line"
        ) from error


def _json_rows(path: Path) -> Iterator[CaptionRow]:
    repeated: list[str] = []
    try:
        value = parse_json(read_whole(path), repeated)
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
            yield _row(path, f"entry {number}", entry)
    elif isinstance(value, dict):
        for video, entry in value.items():
            # An entry that is no object is the video's caption, or null if there is none.
            named = {"caption": entry} if entry is None or isinstance(entry, str) else entry
            row = _row(path, f"entry {_excerpt(video)}", named)
            yield CaptionRow(row.place, {**row.fields, "video_id": video})
    else:
        raise CaptionError(
            f"{path}: expected a list of rows or an object from video to caption, got "
            f"{_excerpt(value)}"
        )


def _csv_rows(path: Path, separators: str = ",;\t") -> Iterator[CaptionRow]:
    try:
        for line, fields, further in csv_rows(path, separators, VIDEO_KEYS):
            if further:
                raise CaptionError(
                    f"{path}, line {line}: more cells than the {len(fields)} columns of the "
                    "header; quote captions that hold the separator"
                )
            yield CaptionRow(f"line {line}", fields)
    except ValueError as error:
        raise CaptionError(
            f"{path}, {error}; expected UTF-8 text with a header, its columns separated by one of "
            f"{separators!r}: correct it, or write it as .jsonl"
        ) from error


def _row(path: Path, place: str, value: object) -> CaptionRow:
    if not isinstance(value, dict):
        raise CaptionError(
            f"{path}, {place}: expected an object with a video and a caption, got {_excerpt(value)}"
        )
    return CaptionRow(place, value)


def _excerpt(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


_READERS: Mapping[str, Callable[[Path], Iterator[CaptionRow]]] = {
    ".jsonl": _jsonl_rows,
    ".json": _json_rows,
    ".csv": _csv_rows,
    ".tsv": partial(_csv_rows, separators="\t"),
    ".parquet": lambda path: (
        CaptionRow(f"row {number}", fields)
        for number, fields in enumerate(parquet_rows(path), start=1)
    ),
}
ENDINGS: Final = tuple(_READERS)
"""Endings of caption files, before ``.gz``."""
