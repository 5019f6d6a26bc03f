"""CSV files that others wrote, read within bounds, plain or gzipped."""

from __future__ import annotations

import csv
import io
from collections import Counter
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final, cast

from lmms_eval_captions.judges.files.bounded_files import (
    MOST_AT_ONCE,
    MOST_LINES,
    in_megabytes,
    open_bounded,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CSV_LINE_ENDS: Final = (b"\n", b"\r")
_MOST_COLUMNS: Final = 10_000


@contextmanager
def open_csv(path: Path) -> Iterator[CsvTable]:
    """The table in a file.

    Raises:
        OSError: As ``open_bounded``.
        ValueError: As ``open_bounded`` and :class:`CsvTable`.
    """
    with open_bounded(path, CSV_LINE_ENDS) as stream, CsvTable(stream) as table:
        yield table


class CsvTable:
    """The rows of comma-separated text in UTF-8 with a header, in order.

    Args:
        stream: Of bytes, from ``bounded`` with ``CSV_LINE_ENDS``; closed at the end of the table.

    Raises:
        ValueError: If it is not such text, has a row of more than ``MOST_AT_ONCE`` characters, a
            column twice, or too many lines or columns; the text says after which line. So do the
            rows.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        # Closed here, as a wrapper that is merely dropped closes the file with a warning.
        self._text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        self._n_of_row = 0
        self._reader = csv.DictReader(self._lines(), strict=True)
        with self._errors():
            self.columns = list(self._reader.fieldnames or ())
            """Names in the header."""
        if len(self.columns) > _MOST_COLUMNS:
            raise ValueError(f"it has more than {_MOST_COLUMNS:,} columns")
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
