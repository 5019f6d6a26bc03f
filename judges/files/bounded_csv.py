"""CSV files that others wrote, read within bounds, plain or gzipped."""

from __future__ import annotations

import csv
import io
from collections import Counter
from contextlib import contextmanager
from itertools import chain
from typing import IO, TYPE_CHECKING, Final, cast

from lmms_eval_captions.judges.files.bounded_files import (
    MOST_AT_ONCE,
    MOST_LINES,
    in_megabytes,
    open_bounded,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

CSV_LINE_ENDS: Final = (b"\n", b"\r")
MOST_COLUMNS: Final = 10_000


@contextmanager
def open_csv(
    path: Path, *, separators: str = ",", expected: Collection[str] = ()
) -> Iterator[CsvTable]:
    """The table in a file, see :class:`CsvTable`.

    Raises:
        OSError: As ``open_bounded``.
        ValueError: As ``open_bounded`` and :class:`CsvTable`.
    """
    with (
        open_bounded(path, CSV_LINE_ENDS) as stream,
        CsvTable(stream, separators=separators, expected=expected) as table,
    ):
        yield table


class CsvTable:
    """The rows of separated text in UTF-8 with a header, in order.

    Args:
        stream: Of bytes, from ``bounded`` with ``CSV_LINE_ENDS``; closed at the end of the table.
        separators: Characters one of which may stand between cells: the one that makes the most
            columns of the header, the first of those that make equally many.
        expected: Names of columns that tell the separator apart before their number does.

    Raises:
        ValueError: If it is not such text, has a row of more than ``MOST_AT_ONCE`` characters, a
            column twice, or too many lines or columns; the text says after which line. So do the
            rows.
    """

    def __init__(
        self, stream: IO[bytes], *, separators: str = ",", expected: Collection[str] = ()
    ) -> None:
        # Closed here, as a wrapper that is merely dropped closes the file with a warning.
        self._text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        self._n_of_row = 0
        lines = self._lines()
        self.separator = separators[0]
        """Stands between cells."""
        self._reader = csv.DictReader(iter(()))
        with self._errors():
            first = next(lines, "")
            self.separator = _separator(first, separators, expected)
            self._reader = csv.DictReader(
                chain((first,), lines), strict=True, delimiter=self.separator
            )
            self.columns = list(self._reader.fieldnames or ())
            """Names in the header."""
        if len(self.columns) > MOST_COLUMNS:
            raise ValueError(f"it has more than {MOST_COLUMNS:,} columns")
        repeated = [name for name, n in Counter(self.columns).items() if name and n > 1]
        if repeated:
            raise ValueError(f"it has two columns {repeated[0]!r:.80}")

    def __enter__(self) -> CsvTable:
        return self

    def __exit__(self, *_: object) -> None:
        self._text.close()

    @property
    def line(self) -> int:
        """Number of the last line read."""
        return self._reader.line_num

    def __iter__(self) -> Iterator[tuple[dict[str, str | None], list[str]]]:
        """Each row by column, ``None`` for a cell that it lacks, and cells beyond the header's."""
        while True:
            self._n_of_row = 0
            with self._errors():
                row = next(self._reader, None)
            if row is None:
                return
            # The key of further cells is None, whatever the type says.
            further = cast("dict[str | None, list[str]]", row).pop(None, [])
            yield row, further

    def _lines(self) -> Iterator[str]:
        for number, line in enumerate(self._text, start=1):
            self._n_of_row += len(line)
            if self._n_of_row > MOST_AT_ONCE:
                raise ValueError(
                    f"a row of more than {in_megabytes(MOST_AT_ONCE)}; is a quote left open?"
                )
            if number > MOST_LINES:
                raise ValueError(f"it has more than {MOST_LINES:,} lines")
            yield line

    @contextmanager
    def _errors(self) -> Iterator[None]:
        # csv's own limit of 131,072 characters is below what a reasoning captioner can write.
        before = csv.field_size_limit(MOST_AT_ONCE)
        try:
            yield
        except (csv.Error, ValueError) as error:
            raise ValueError(f"after line {self.line}: {error}") from error
        finally:
            csv.field_size_limit(before)


def _separator(header: str, separators: str, expected: Collection[str]) -> str:
    """The separator that makes the most of a header.

    >>> _separator("video_id;caption, in English", ",;", ["video_id"])
    ';'
    """

    def made(separator: str) -> tuple[int, int]:
        columns = next(csv.reader([header], delimiter=separator), [])
        return len(set(columns) & set(expected)), len(columns)

    return max(separators, key=made) if len(separators) > 1 else separators
