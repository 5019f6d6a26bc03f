"""Files of users and of others: JSON, JSON lines and YAML, plain or gzipped.

Whatever is wrong with a file is an ``OSError`` or a ``ValueError``; the caller says which file it
was and what to do. Texts from outside may hold lone surrogates, which no UTF-8 file takes. Each is
replaced by U+FFFD when a text is read; pairs become their character.
"""

from __future__ import annotations

import codecs
import gzip
import json
import os
import re
import stat
import uuid
import zlib
from collections import Counter
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final, cast

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_HALF: Final = re.compile("[\ud800-\udfff]")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89aAbB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def whole(text: str) -> str:
    """A text that can be written as UTF-8; unchanged if it already can."""
    if text.isascii() or _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_json(text: str) -> str:
    """JSON whose strings can all be written as UTF-8; unchanged if they already can."""
    if "\\ud" not in text and "\\uD" not in text:
        return text if text.isascii() else whole(text)
    return whole(_ESCAPE.sub(lambda match: "\\ufffd" if match[1] else match[0], text))


_GZIP: Final = b"\x1f\x8b"
_OTHER_TEXTS: Final = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
MOST_BYTES: Final = 2 * 2**30
"""Most bytes of a packed file, unpacked; a file of a megabyte may say that it holds a terabyte."""


class BadLineError(ValueError):
    """A line that is no JSON, with its number, from 1."""

    def __init__(self, number: int, raw: bytes, error: ValueError) -> None:
        super().__init__(str(error))
        self.number = number
        self.raw = raw


def write_atomically(path: Path, content: bytes) -> None:
    """Write or replace a file in one step; its folder is made.

    A process that is killed leaves a hidden draft next to it at most.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        draft.write_bytes(content)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def open_file(path: Path) -> Iterator[IO[bytes]]:
    """A file's bytes, unpacked if they are gzipped, whatever its name.

    Raises:
        OSError: If it is not a regular file, cannot be read, or its packed data are damaged.
        ValueError: If it is not UTF-8 text, or larger than ``MOST_BYTES`` unpacked.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path.name!r} is a folder")
    if not stat.S_ISREG(mode):
        raise OSError(f"{path.name!r} is no regular file")
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(0)
        encoding = next((name for mark, name in _OTHER_TEXTS.items() if head.startswith(mark)), "")
        if encoding:
            raise ValueError(f"it is {encoding} text; save it as UTF-8")
        if not head.startswith(_GZIP):
            yield file
            return
        try:
            with gzip.open(file) as unpacked:
                n_bytes = 0
                while chunk := unpacked.read(2**20):
                    n_bytes += len(chunk)
                    if n_bytes > MOST_BYTES:
                        raise ValueError(f"it has more than {MOST_BYTES >> 30} GiB unpacked")
                unpacked.seek(0)
                yield cast("IO[bytes]", unpacked)
        except (EOFError, zlib.error) as error:
            raise OSError(f"its packed data are cut off or damaged: {error}") from error


def read_whole(path: Path) -> bytes:
    """All bytes of a file, unpacked; see :func:`open_file` for what is raised."""
    with open_file(path) as stream:
        return stream.read()


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, each with its number, which starts at 1."""
    with open_file(path) as stream:
        for number, raw in enumerate(stream, start=1):
            if raw.strip():
                yield number, raw


def json_lines(path: Path) -> Iterator[tuple[int, object]]:
    """The JSON value of each line that is not blank, with the line's number, which starts at 1."""
    for number, raw in numbered_lines(path):
        try:
            value = parse_json(raw)
        except ValueError as error:
            raise BadLineError(number, raw, error) from error
        yield number, value


def parse_json(raw: bytes, repeated: list[str] | None = None) -> object:
    """The value of JSON text in UTF-8; of a repeated key the last value counts."""

    def noted(pairs: list[tuple[str, object]]) -> dict[str, object]:
        value = dict(pairs)
        if repeated is not None and len(value) < len(pairs):
            repeated.extend(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        return value

    text = whole_json(raw.decode("utf-8-sig"))
    try:
        value: object = json.loads(text, object_pairs_hook=None if repeated is None else noted)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return value


class _YamlLoader(yaml.SafeLoader):
    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        keys = Counter(key.value for key, _ in node.value if isinstance(key.value, str))
        if repeated := [key for key, n in keys.items() if n > 1]:
            raise yaml.constructor.ConstructorError(
                None, None, f"found the key {repeated[0]!r:.80} twice", node.start_mark
            )
        super().flatten_mapping(node)


def read_yaml_file(path: Path) -> object:
    """Read a user's YAML or JSON file; a ``ValueError`` in one line if it is neither."""
    text = read_whole(path).decode("utf-8-sig")
    try:
        value: object = _YamlLoader(text).get_single_data()
    except RecursionError:
        raise ValueError("nested too deep") from None
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error
    except (ValueError, LookupError, AttributeError, TypeError, OverflowError) as error:
        # A tag on a text that is none of its kind: !!bool maybe, !!timestamp soon.
        raise ValueError(f"a value that is not what it is marked as: {error!r:.160}") from error
    return value
