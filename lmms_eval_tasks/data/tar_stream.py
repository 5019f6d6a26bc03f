"""Tar files of any compression, read once from front to back and to their very end."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_MOST_HEADER_BYTES: Final = 16 * 2**10
"""Of a long name or an extended header, which tarfile reads at once and searches in square time."""
_MOST_PADDING_BYTES: Final = 2**20
"""Zeros behind the end mark: tar fills up 10 kB, at most a tape's block. A download that made room
and stopped has more."""
_CHUNK: Final = 2**16

_OPENERS: Final[dict[bytes, Callable[[IO[bytes]], object]]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}


class BrokenTarError(tarfile.TarError):
    """A tar file that is cut off or damaged."""


class _Forward:
    """What tarfile needs of a file, from a stream that only goes forward."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._position = 0
        self.last = b""
        """What the last read gave."""

    def read(self, n_bytes: int) -> bytes:
        if n_bytes > _MOST_HEADER_BYTES:
            raise BrokenTarError(f"a header of {n_bytes:,} bytes")
        return self.take(n_bytes)

    def take(self, n_bytes: int) -> bytes:
        """So many bytes, fewer at the end alone."""
        try:
            self.last = self._stream.read(n_bytes)
        except OSError as error:
            # The decompressors' own errors have no number, those of the disk do.
            if error.errno is None:
                raise BrokenTarError(str(error)) from error
            raise
        self._position += len(self.last)
        return self.last

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> int:
        if position < self._position:
            raise BrokenTarError("members within each other")
        while self._position < position and self.take(min(_CHUNK, position - self._position)):
            pass
        return self._position


class TarStream:
    """The members of a tar file in order, and the content of the one that came last."""

    def __init__(self, stream: IO[bytes], *, is_packed: bool) -> None:
        self._forward = _Forward(stream)
        self._is_packed = is_packed
        try:
            self._tar = tarfile.TarFile(fileobj=cast("IO[bytes]", self._forward))
        except tarfile.ReadError as error:
            raise BrokenTarError(
                f"neither tar nor zip, or its start is damaged: {error}"
            ) from error

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        """Every member.

        Raises:
            BrokenTarError: If a header is damaged, or the file does not end as a whole one does.
        """
        while (member := self._tar.next()) is not None:
            # tarfile keeps them for lookups by name.
            self._tar.members = []  # type: ignore[attr-defined] # not in its stubs
            yield member
        self._check_end()

    def read(self, n_bytes: int) -> bytes:
        """Bytes of the member that came last."""
        return self._forward.take(min(n_bytes, _CHUNK * 16))

    def _check_end(self) -> None:
        """Make sure that the members ended with the file.

        tarfile takes a damaged header for the end, and a file that was cut between two members for
        a whole one. Two blocks of zeros end a tar file; the cut may be within them. A compressed
        one tells by itself whether it was cut, so that the zeros may be missing there.
        """
        header = self._forward.last
        if header.strip(b"\0") or (len(header) < tarfile.BLOCKSIZE and not self._is_packed):
            raise BrokenTarError("it ends without an end mark: cut off, or damaged there")
        n_bytes = 0
        while chunk := self._forward.take(_CHUNK):
            n_bytes += len(chunk)
            if chunk.strip(b"\0"):
                raise BrokenTarError("something stands behind its end mark: damaged, or two files")
            if n_bytes > _MOST_PADDING_BYTES:
                raise BrokenTarError("more zeros at its end than any tar has: half downloaded")


@contextmanager
def open_tar(path: Path) -> Iterator[TarStream]:
    """A tar file, plain or compressed with gzip, bzip2 or xz.

    Raises:
        BrokenTarError: If it is none, or damaged; so does reading.
    """
    with path.open("rb") as file:
        head = file.read(6)
        file.seek(0)
        opener = next(
            (opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None
        )
        if opener is None:
            yield TarStream(file, is_packed=False)
            return
        with cast("IO[bytes]", opener(file)) as stream:
            yield TarStream(stream, is_packed=True)
