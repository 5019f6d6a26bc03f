"""Reading headers of compressed video bit by bit, and what is said of a packet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class DoubtError(Exception):
    """Frames of this stream cannot be told from its packets; the text says why."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What one packet gives."""

    n_shown: int
    """Frames shown, 0 or 1."""
    starts: bool
    """Whether the frames from this one on, in order of time, can be decoded from here."""
    order: tuple[int, int]
    """Rises from frame to frame in the order in which a decoder puts them out."""


Reader = Callable[[bytes], Mark]
"""Reads one packet after the other, in their order in the file."""


class Bits:
    """Reads bits of a header, the highest of a byte first."""

    def __init__(self, data: bytes) -> None:
        self._value = int.from_bytes(data, "big")
        self._left = 8 * len(data)

    def take(self, n: int) -> int:
        """The next ``n`` bits as a number."""
        self._left -= n
        if self._left < 0:
            raise DoubtError("a header is cut off")
        return (self._value >> self._left) & ((1 << n) - 1)

    def golomb(self) -> int:
        """The next unsigned Exp-Golomb number."""
        n_zeros = 0
        while not self.take(1):
            n_zeros += 1
        return (1 << n_zeros) - 1 + self.take(n_zeros)
