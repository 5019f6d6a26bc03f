"""What a packet of HEVC holds.

Source: ITU-T H.265, 7.3 and 8.3.1.
"""

from __future__ import annotations

from lmms_eval_captions.model_wrappers.video.packet_bits import Bits, DoubtError, Mark
from lmms_eval_captions.model_wrappers.video.packet_nal import (
    N_HEADER,
    PictureOrder,
    bits_of,
    learn_all,
    units_of,
)


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
        self._order = PictureOrder()
        self._is_first = True
        at = 23
        for _ in range(extradata[22]):
            n_units = int.from_bytes(extradata[at + 1 : at + 3], "big")
            at += 3
            at = learn_all(extradata, at, n_units, self._learn)

    def __call__(self, packet: bytes) -> Mark:
        """See ``Reader``."""
        first: bytes | None = None
        starts = True
        for unit in units_of(packet, self._n_length):
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
        bits = bits_of(unit, 2, N_HEADER)
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
            bits = bits_of(unit, 2, N_HEADER)
            number, sequence = bits.golomb(), bits.golomb()
            bits.take(1)
            if bits.take(1):
                raise DoubtError("its HEVC may hide pictures")
            self._pictures[number] = (sequence, bits.take(3))
        elif kind == 33:
            self._learn_sequence(bits_of(unit, 2))

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
