"""What a packet of H.264 holds.

Source: ITU-T H.264, 7.3 and 8.2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.model_wrappers.video.packet_bits import Bits, DoubtError, Mark
from lmms_eval_captions.model_wrappers.video.packet_nal import (
    N_HEADER,
    PictureOrder,
    bits_of,
    learn_all,
    units_of,
)


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
        self._order = PictureOrder()
        self._n_packets = 0
        at = 5
        for mask in (31, 255):  # parameters of sequences, then of pictures
            n_units, at = extradata[at] & mask, at + 1
            at = learn_all(extradata, at, n_units, self._learn)

    def __call__(self, packet: bytes) -> Mark:
        """See ``Reader``."""
        first: bytes | None = None
        starts = True
        self._n_packets += 1
        for unit in units_of(packet, self._n_length):
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
        bits = bits_of(unit, 1, N_HEADER)
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
            bits = bits_of(unit, 1, N_HEADER)
            number = bits.golomb()
            self._pictures[number] = bits.golomb()
        elif kind == 7:
            number, parameters = self._sequence(bits_of(unit, 1))
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
