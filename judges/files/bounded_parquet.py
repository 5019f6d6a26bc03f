"""Parquet files that others wrote, read within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.files.bounded_csv import MOST_COLUMNS
from lmms_eval_captions.judges.files.bounded_files import (
    MOST_AT_ONCE,
    MOST_BYTES,
    MOST_LINES,
    MOST_RATIO,
    in_megabytes,
    require_file,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ROWS_AT_ONCE: Final = 1024


def parquet_rows(path: Path) -> Iterator[dict[str, object]]:
    """The rows of a file by column, in order; what is neither text nor a number is ``None``.

    Texts are taken apart batch by batch, those of a dictionary too: a file of a megabyte may spell
    one text of a megabyte a million times. Sizes are those that the file itself declares: one that
    lies takes at most the 2 GiB of a page.

    Raises:
        OSError: If it cannot be read, or is no regular file.
        ValueError: If it is no Parquet, damaged, or beyond a bound.
    """
    import pyarrow

    require_file(path)
    most_bytes = min(MOST_BYTES, max(MOST_AT_ONCE, MOST_RATIO * path.stat().st_size))
    try:
        yield from _rows(path, most_bytes)
    except (pyarrow.ArrowException, MemoryError) as error:
        raise ValueError(f"it is no Parquet, or damaged: {' '.join(str(error).split())}") from error


def _rows(path: Path, most_bytes: int) -> Iterator[dict[str, object]]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as plain:
        schema, metadata = plain.schema_arrow, plain.metadata
        _check(metadata, most_bytes)
    names = [field.name for field in schema if _is_plain(field.type)]
    nothing = dict.fromkeys(schema.names)
    texts = [field.name for field in schema if _is_text(field.type)]
    n_bytes = 0
    with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
        for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=names, use_threads=False):
            n_bytes += sum(map(_n_bytes, batch.columns))
            if n_bytes > most_bytes:
                raise ValueError(f"its texts have more than {in_megabytes(most_bytes)}")
            for row in batch.to_pylist():
                yield {**nothing, **row}


def _check(metadata: Any, most_bytes: int) -> None:  # noqa: ANN401 - pyarrow has no types
    if metadata.num_rows > MOST_LINES:
        raise ValueError(f"it has more than {MOST_LINES:,} rows")
    if metadata.num_columns > MOST_COLUMNS:
        raise ValueError(f"it has more than {MOST_COLUMNS:,} columns")
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    if sum(group.total_byte_size for group in groups) > most_bytes:
        raise ValueError(f"it has more than {in_megabytes(most_bytes)} unpacked")


def _is_text(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_plain(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    from pyarrow import types

    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return _is_text(kind) or bool(types.is_integer(kind) or types.is_floating(kind))


def _n_bytes(column: Any) -> int:  # noqa: ANN401 - pyarrow has no types
    """Bytes of a column's texts, each counted as often as it stands in a row."""
    import pyarrow.compute

    lengths = pyarrow.compute.binary_length
    if pyarrow.types.is_dictionary(column.type):
        sizes = lengths(column.dictionary).take(column.indices)
    elif _is_text(column.type):
        sizes = lengths(column)
    else:
        return 0
    return int(pyarrow.compute.sum(sizes).as_py() or 0)
