"""What the packets of H.264 and of HEVC have in common, as stored in MP4 and Matroska."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from lmms_eval_captions.model_wrappers.video.packet_bits import Bits, DoubtError

N_HEADER: Final = 64
"""Bytes that are enough for the head of a slice or of the parameters of a picture."""


def learn_all(extradata: bytes, at: int, n_units: int, learn: Callable[[bytes], None]) -> int:
    """Hand on stored units, each behind its length of two bytes; where they end."""
    for _ in range(n_units):
        size = int.from_bytes(extradata[at : at + 2], "big")
        learn(extradata[at + 2 : at + 2 + size])
        at += 2 + size
    return at


def units_of(packet: bytes, n_length: int) -> Iterator[bytes]:
    """NAL units of a packet in which each stands behind its length."""
    at = 0
    while at + n_length <= len(packet):
        size = int.from_bytes(packet[at : at + n_length], "big")
        at += n_length
        if not 2 <= size <= len(packet) - at:
            raise DoubtError("a NAL unit has an impossible length")
        yield packet[at : at + size]
        at += size


def bits_of(unit: bytes, n_head: int, n_bytes: int | None = None) -> Bits:
    """A unit behind its own head, without the bytes that keep start codes out of it."""
    return Bits(unit[n_head:n_bytes].replace(b"\0\0\3", b"\0\0"))


class PictureOrder:
    """Orders pictures by their counts (POC), of which headers hold the lower bits."""

    def __init__(self) -> None:
        self._sequence = 0
        self._before = 0

    def restart(self) -> tuple[int, int]:
        """A picture that everything later in the file comes after."""
        self._sequence += 1
        self._before = 0
        return (self._sequence, 0)

    def place(self, low: int, n_bits: int, *, counts: bool) -> tuple[int, int]:
        """The next picture; it ``counts`` where the following are told from it."""
        span = 1 << n_bits
        count = self._before - (self._before % span) + low
        if count - self._before > span // 2:
            count -= span
        elif self._before - count >= span // 2:
            count += span
        if counts:
            self._before = count
        return (self._sequence, count)
