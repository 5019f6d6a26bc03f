"""Files that others wrote, read within bounds: JSON and JSON lines, plain or gzipped.

Whatever is wrong with a file is an ``OSError`` or a ``ValueError`` in words; who asked for the file
says which file it was and what to do.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import lzma
import stat
import zlib
from collections import Counter
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final, cast

from lmms_eval_captions.judges.surrogates import whole_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_AT_ONCE: Final = 64 * 2**20
"""Most bytes of one line, one CSV row, or a file that is read whole. A caption of a million emoji,
written as JSON escapes three times over in a sample log, takes 36 MB."""
MOST_BYTES: Final = 2 * 2**30
"""Most bytes of a file that is read line by line, unpacked."""
MOST_LINES: Final = 2_000_000
MOST_RATIO: Final = 100
"""Most unpacked bytes per packed byte, beyond ``MOST_AT_ONCE``; benchmark files have 5, zeros
1,000."""
MOST_DEPTH: Final = 100
"""Most levels of lists and objects within each other."""
_CHUNK: Final = 2**16
_GZIP: Final = b"\x1f\x8b"
_OTHER_TEXTS: Final = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


class BadLineError(ValueError):
    """A line that is no JSON.

    Attributes:
        number: The line's, which starts at 1.
        raw: The line.
    """

    def __init__(self, number: int, raw: bytes, error: ValueError) -> None:
        super().__init__(str(error))
        self.number = number
        self.raw = raw


class _Bounded(io.RawIOBase):
    """A stream that ends in an error where it has too much, in all or without a line's end."""

    def __init__(self, stream: IO[bytes], most_bytes: int, line_ends: tuple[bytes, ...]) -> None:
        super().__init__()
        self._stream = stream
        self._most_bytes = most_bytes
        self._line_ends = line_ends
        self._n_bytes = self._n_of_line = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # any buffer
        try:
            chunk = self._stream.read(min(len(buffer), _CHUNK))
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise OSError(f"its packed data are cut off or damaged: {error}") from error
        self._n_bytes += len(chunk)
        if self._n_bytes > self._most_bytes:
            raise ValueError(f"it has more than {in_megabytes(self._most_bytes)} unpacked")
        end = max(chunk.rfind(mark) for mark in self._line_ends)
        self._n_of_line = len(chunk) - end - 1 + (self._n_of_line if end < 0 else 0)
        if self._n_of_line > MOST_AT_ONCE:
            raise ValueError(f"a line has more than {in_megabytes(MOST_AT_ONCE)}")
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        self._stream.close()
        super().close()


def bounded(
    stream: IO[bytes],
    *,
    packed_bytes: int | None = None,
    line_ends: tuple[bytes, ...] = (b"\n",),
) -> IO[bytes]:
    """A stream of which only so much can be read; closing it closes the given one.

    Args:
        stream: To read from.
        packed_bytes: What the content took before it was unpacked, ``None`` if it was not packed.
        line_ends: What ends a line.
    """
    most = MOST_BYTES
    if packed_bytes is not None:
        most = min(most, max(MOST_AT_ONCE, MOST_RATIO * packed_bytes))
    return io.BufferedReader(_Bounded(stream, most, line_ends), _CHUNK)


def require_file(path: Path) -> None:
    """Make sure that opening a path cannot wait for ever.

    Raises:
        OSError: If there is nothing, or a folder, a pipe or a device.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path.name!r} is a folder")
    if not stat.S_ISREG(mode):
        raise OSError(f"{path.name!r} is no regular file")


@contextmanager
def open_bounded(path: Path, line_ends: tuple[bytes, ...] = (b"\n",)) -> Iterator[IO[bytes]]:
    """A file's bytes within bounds, unpacked where its content, whatever its name, is gzipped.

    Raises:
        OSError: If it cannot be read, or is a folder, a pipe or a device. Reading raises it where
            packed data are cut off or damaged.
        ValueError: If it says that it is text of another encoding than UTF-8. Reading raises it
            beyond a bound.
    """
    require_file(path)
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(0)
        encoding = next((name for mark, name in _OTHER_TEXTS.items() if head.startswith(mark)), "")
        if encoding:
            raise ValueError(f"it is {encoding} text; save it as UTF-8")
        if not head.startswith(_GZIP):
            yield bounded(file, line_ends=line_ends)
            return
        with gzip.open(file) as unpacked:
            yield bounded(
                # gzip's own class is no IO to the type checker.
                cast("IO[bytes]", unpacked),
                packed_bytes=path.stat().st_size,
                line_ends=line_ends,
            )


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, each with its number, which starts at 1.

    Raises:
        OSError: As ``open_bounded``.
        ValueError: As ``open_bounded``, or if there are more than ``MOST_LINES``.
    """
    with open_bounded(path) as stream:
        for number, raw in enumerate(stream, start=1):
            if number > MOST_LINES:
                raise ValueError(f"it has more than {MOST_LINES:,} lines")
            if raw.strip():
                yield number, raw


def json_lines(path: Path) -> Iterator[tuple[int, object]]:
    """The JSON value of each line that is not blank, with the line's number, which starts at 1.

    Raises:
        OSError: As ``open_bounded``.
        ValueError: As ``numbered_lines``; :class:`BadLineError` where a line is no JSON.
    """
    for number, raw in numbered_lines(path):
        try:
            value = parse_json(raw)
        except ValueError as error:
            raise BadLineError(number, raw, error) from error
        yield number, value


def read_whole(path: Path, most_bytes: int = MOST_AT_ONCE) -> bytes:
    """All bytes of a file, unpacked.

    Raises:
        OSError: As ``open_bounded``.
        ValueError: As ``open_bounded``, or if it has more than ``most_bytes``.
    """
    with open_bounded(path) as stream:
        raw = stream.read(most_bytes + 1)
    if len(raw) > most_bytes:
        raise ValueError(f"it has more than {in_megabytes(most_bytes)}, unpacked if it is packed")
    return raw


def parse_json(raw: bytes, repeated: list[str] | None = None) -> object:
    """The value that JSON text in UTF-8 is, with or without a byte order mark.

    Of a key that an object has twice the last value counts. Half a character becomes U+FFFD.

    Args:
        raw: The text.
        repeated: Takes up every key that an object has more than once; ``None`` saves looking.

    Raises:
        ValueError: If it is no JSON, is not UTF-8, has a whole number of more than 4,300 digits, or
            is nested deeper than ``MOST_DEPTH`` levels.
    """
    text = whole_json(raw.decode("utf-8-sig"))

    def noted(pairs: list[tuple[str, object]]) -> dict[str, object]:
        value = dict(pairs)
        if repeated is not None and len(value) < len(pairs):
            repeated.extend(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        return value

    try:
        value: object = json.loads(text, object_pairs_hook=None if repeated is None else noted)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    if text.count("[") + text.count("{") > MOST_DEPTH:
        check_depth(value)
    return value


def check_depth(value: object, most_values: float = float("inf")) -> None:
    """Make sure that a value of lists and mappings is neither nested too deep nor too large.

    Raises:
        ValueError: If it is nested deeper than ``MOST_DEPTH`` levels (or in itself), or holds more
            than ``most_values``.
    """
    level: list[object] = [value]
    n_values = 0
    for _ in range(MOST_DEPTH + 1):
        next_level: list[object] = []
        for item in level:
            if isinstance(item, dict):
                next_level.extend(item.values())
            elif isinstance(item, list | tuple | set):
                next_level.extend(item)
            if n_values + len(next_level) > most_values:
                raise ValueError(f"more than {most_values:,} values")
        if not next_level:
            return
        n_values += len(next_level)
        level = next_level
    raise ValueError(_too_deep())


def in_megabytes(n_bytes: int) -> str:
    """A number of bytes in words."""
    return f"{n_bytes / 2**20:,.4g} MB"


def _too_deep() -> str:
    return f"nested deeper than {MOST_DEPTH} levels"
