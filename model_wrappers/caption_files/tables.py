"""Tables of users and of others: CSV, plain or gzipped, and Parquet.

Errors are as in :mod:`lmms_eval_captions.judges.files`.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast

from lmms_eval_captions.judges import files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

_LONGEST_CELL: Final = 2**31 - 1
"""The csv module's own limit of 131,072 characters is below what a reasoning captioner writes."""
_ROWS_AT_ONCE: Final = 1024


@contextmanager
def open_csv(
    path: Path, *, separators: str = ",", expected: Collection[str] = ()
) -> Iterator[CsvTable]:
    """The table in a file, see :class:`CsvTable`.

    Raises:
        OSError: As :func:`open_file`, or ValueError, which :class:`CsvTable` raises, too.
    """
    csv.field_size_limit(_LONGEST_CELL)
    with (
        files.open_file(path) as stream,
        io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as lines,
    ):
        yield CsvTable(lines, separators, expected)


class CsvTable:
    """The rows of separated text in UTF-8 with a header, in order.

    Args:
        lines: The text.
        separators: Characters one of which may stand between cells: the one that makes the most
            columns of the header, the first of those that make equally many.
        expected: Names of columns that tell the separator apart before their number does.
    """

    def __init__(self, lines: Iterable[str], separators: str, expected: Collection[str]) -> None:
        self._reader = csv.DictReader(iter(()))
        with self._errors():
            every = iter(lines)
            first = next(every, "")
            self.separator = _separator(first, separators, expected)
            """Stands between cells."""
            self._reader = csv.DictReader(
                chain((first,), every), strict=True, delimiter=self.separator
            )
            self.columns = list(self._reader.fieldnames or ())
            """Names in the header."""
        repeated = [name for name, n in Counter(self.columns).items() if name and n > 1]
        if repeated:
            raise ValueError(f"it has two columns {repeated[0]!r:.80}")

    @property
    def line(self) -> int:
        """Number of the last line read."""
        return self._reader.line_num

    def __iter__(self) -> Iterator[tuple[dict[str, str | None], list[str]]]:
        """Each row by column, ``None`` for a cell that it lacks, and cells beyond the header's."""
        while True:
            with self._errors():
                row = next(self._reader, None)
            if row is None:
                return
            # The key of further cells is None, whatever the type says.
            further = cast("dict[str | None, list[str]]", row).pop(None, [])
            yield row, further

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (csv.Error, ValueError) as error:
            raise ValueError(f"after line {self.line}: {error}") from error


def _separator(header: str, separators: str, expected: Collection[str]) -> str:
    """The separator that makes the most of a header.

    >>> _separator("video_id;caption, in English", ",;", ["video_id"])
    ';'
    """

    def made(separator: str) -> tuple[int, int]:
        columns = next(csv.reader([header], delimiter=separator), [])
        return len(set(columns) & set(expected)), len(columns)

    return max(separators, key=made) if len(separators) > 1 else separators


def parquet_rows(path: Path) -> Iterator[dict[str, object]]:
    """The rows of a file by column, in order; what is neither text nor a number is ``None``.

    Raises:
        OSError: If it cannot be read, or is no regular file.
        ValueError: If it is no Parquet, or damaged, or its texts have more than ``MOST_BYTES``.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        with files.open_file(path) as stream, pyarrow.parquet.ParquetFile(stream) as file:
            names = [field.name for field in file.schema_arrow if _is_plain(field.type)]
            nothing = dict.fromkeys(file.schema_arrow.names)
            n_letters = 0
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=names, use_threads=False):
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
