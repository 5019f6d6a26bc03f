"""What packets of H.264 and HEVC hold, as stored in MP4 and Matroska.

Sources: ITU-T H.264, 7.3 and 8.2.1; ITU-T H.265, 7.3 and 8.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.model_wrappers.video.packet_bits import Bits, DoubtError, Mark

_N_HEADER: Final = 64
"""Bytes that are enough for the head of a slice or of the parameters of a picture."""


def _learn_all(extradata: bytes, at: int, n_units: int, learn: Callable[[bytes], None]) -> int:
    """Hand on stored units, each behind its length of two bytes; where they end."""
    for _ in range(n_units):
        size = int.from_bytes(extradata[at : at + 2], "big")
        learn(extradata[at + 2 : at + 2 + size])
        at += 2 + size
    return at


def _units(packet: bytes, n_length: int) -> Iterator[bytes]:
    """NAL units of a packet in which each stands behind its length."""
    at = 0
    while at + n_length <= len(packet):
        size = int.from_bytes(packet[at : at + n_length], "big")
        at += n_length
        if not 2 <= size <= len(packet) - at:
            raise DoubtError("a NAL unit has an impossible length")
        yield packet[at : at + size]
        at += size


def _bits(unit: bytes, n_head: int, n_bytes: int | None = None) -> Bits:
    """A unit behind its own head, without the bytes that keep start codes out of it."""
    return Bits(unit[n_head:n_bytes].replace(b"\0\0\3", b"\0\0"))


class _Order:
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


@dataclass(frozen=True, slots=True)
class _H264Parameters:
    n_number_bits: int
    n_order_bits: int | None
    """``None`` where pictures are shown in their order in the file."""
    has_planes: bool


class H264:
    """Whole frames, no fields; a start is an IDR picture."""

    _LONG: Final = frozenset({100, 110, 122, 244, 44, 83, 86, 118, 128})
    """Profiles whose parameters say more."""

    def __init__(self, extradata: bytes) -> None:
        if len(extradata) < 7 or extradata[0] != 1:
            raise DoubtError("its H.264 is not stored as in MP4")
        self._n_length = (extradata[4] & 3) + 1
        self._sequences: dict[int, _H264Parameters] = {}
        self._pictures: dict[int, int] = {}
        self._order = _Order()
        self._n_packets = 0
        at = 5
        for mask in (31, 255):  # parameters of sequences, then of pictures
            n_units, at = extradata[at] & mask, at + 1
            at = _learn_all(extradata, at, n_units, self._learn)

    def __call__(self, packet: bytes) -> Mark:
        """See ``Reader``."""
        first: bytes | None = None
        starts = True
        self._n_packets += 1
        for unit in _units(packet, self._n_length):
            kind = unit[0] & 31
            if kind in (2, 3, 4):
                raise DoubtError("its H.264 is partitioned")
            if kind in (1, 5):
                starts &= kind == 5
                if unit[1] >> 7:  # The number of its first macroblock is 0: a picture begins.
                    if first:
                        raise DoubtError("a packet of H.264 holds several pictures")
                    first = unit
            else:
                self._learn(unit)
        if first is None:
            raise DoubtError("a packet of H.264 holds no picture")
        return Mark(1, starts, self._place(first))

    def _place(self, unit: bytes) -> tuple[int, int]:
        bits = _bits(unit, 1, _N_HEADER)
        bits.golomb()
        bits.golomb()
        sequence = self._sequences.get(self._pictures.get(bits.golomb(), -1))
        if sequence is None:
            raise DoubtError("a picture of H.264 lacks its parameters")
        if unit[0] & 31 == 5:
            return self._order.restart()
        if sequence.n_order_bits is None:
            return self._order.place(self._n_packets, 62, counts=True)
        bits.take(sequence.n_number_bits + 2 * sequence.has_planes)
        low = bits.take(sequence.n_order_bits)
        return self._order.place(low, sequence.n_order_bits, counts=bool(unit[0] & 0x60))

    def _learn(self, unit: bytes) -> None:
        kind = unit[0] & 31 if unit else 0
        if kind == 8:
            bits = _bits(unit, 1, _N_HEADER)
            number = bits.golomb()
            self._pictures[number] = bits.golomb()
        elif kind == 7:
            number, parameters = self._sequence(_bits(unit, 1))
            self._sequences[number] = parameters

    def _sequence(self, bits: Bits) -> tuple[int, _H264Parameters]:
        profile = bits.take(8)
        bits.take(16)
        number = bits.golomb()
        has_planes = False
        if profile in self._LONG:
            has_planes = bits.golomb() == 3 and bool(bits.take(1))
            bits.golomb()
            bits.golomb()
            bits.take(1)
            if bits.take(1):
                raise DoubtError("its H.264 has scaling lists")
        n_number_bits = bits.golomb() + 4
        kind = bits.golomb()
        if kind not in (0, 2):
            raise DoubtError("its H.264 orders pictures in cycles")
        n_order_bits = bits.golomb() + 4 if kind == 0 else None
        bits.golomb()
        has_gaps = bits.take(1)
        bits.golomb()
        bits.golomb()
        if has_gaps or not bits.take(1):
            raise DoubtError("its H.264 may have fields or gaps")
        return number, _H264Parameters(n_number_bits, n_order_bits, has_planes)


class Hevc:
    """A start is an IDR or CRA picture: what is later in time is not built on what was before."""

    def __init__(self, extradata: bytes) -> None:
        if len(extradata) < 23 or extradata[0] != 1:
            raise DoubtError("its HEVC is not stored as in MP4")
        self._n_length = (extradata[21] & 3) + 1
        self._sequences: dict[int, tuple[int, bool]] = {}
        """Bits of a picture's count, and whether colours are coded apart."""
        self._pictures: dict[int, tuple[int, int]] = {}
        """The sequence, and bits to pass over."""
        self._order = _Order()
        self._is_first = True
        at = 23
        for _ in range(extradata[22]):
            n_units = int.from_bytes(extradata[at + 1 : at + 3], "big")
            at += 3
            at = _learn_all(extradata, at, n_units, self._learn)

    def __call__(self, packet: bytes) -> Mark:
        """See ``Reader``."""
        first: bytes | None = None
        starts = True
        for unit in _units(packet, self._n_length):
            kind, layer = (unit[0] >> 1) & 63, ((unit[0] & 1) << 5) | (unit[1] >> 3)
            if layer:
                continue
            if kind < 32:
                starts &= kind in (19, 20, 21)
                if unit[2] >> 7:
                    if first:
                        raise DoubtError("a packet of HEVC holds several pictures")
                    first = unit
            else:
                self._learn(unit)
        if first is None:
            raise DoubtError("a packet of HEVC holds no picture")
        mark = Mark(1, starts, self._place(first))
        self._is_first = False
        return mark

    def _place(self, unit: bytes) -> tuple[int, int]:
        kind = (unit[0] >> 1) & 63
        bits = _bits(unit, 2, _N_HEADER)
        bits.take(1)
        if kind in (16, 17, 18):
            raise DoubtError("its HEVC is joined of several sequences")
        if 16 <= kind <= 23 and bits.take(1) and not self._is_first:
            raise DoubtError("its HEVC drops pictures")
        sequence, n_passed = self._pictures.get(bits.golomb(), (-1, 0))
        if sequence not in self._sequences:
            raise DoubtError("a picture of HEVC lacks its parameters")
        if kind in (19, 20):
            return self._order.restart()
        n_bits, has_planes = self._sequences[sequence]
        bits.take(n_passed)
        bits.golomb()
        bits.take(2 * has_planes)
        # Those of a higher layer of time, leading ones and those not built on are not counted from.
        counts = unit[1] & 7 == 1 and kind not in (6, 7, 8, 9) and (kind > 15 or kind % 2 == 1)
        return self._order.place(bits.take(n_bits), n_bits, counts=counts)

    def _learn(self, unit: bytes) -> None:
        kind = (unit[0] >> 1) & 63 if unit else 0
        if kind in (36, 37):
            raise DoubtError("its HEVC is joined of several sequences")
        if kind == 34:
            bits = _bits(unit, 2, _N_HEADER)
            number, sequence = bits.golomb(), bits.golomb()
            bits.take(1)
            if bits.take(1):
                raise DoubtError("its HEVC may hide pictures")
            self._pictures[number] = (sequence, bits.take(3))
        elif kind == 33:
            self._learn_sequence(_bits(unit, 2))

    def _learn_sequence(self, bits: Bits) -> None:
        bits.take(4)
        n_layers = bits.take(3)
        bits.take(1 + 96)
        has = [(bits.take(1), bits.take(1)) for _ in range(n_layers)]
        if n_layers:
            bits.take(2 * (8 - n_layers))
        for has_profile, has_level in has:
            bits.take(88 * has_profile + 8 * has_level)
        number = bits.golomb()
        has_planes = bits.golomb() == 3 and bool(bits.take(1))
        bits.golomb()
        bits.golomb()
        if bits.take(1):
            for _ in range(4):
                bits.golomb()
        bits.golomb()
        bits.golomb()
        self._sequences[number] = (bits.golomb() + 4, has_planes)
