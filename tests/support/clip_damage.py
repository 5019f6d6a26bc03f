"""Damage to a clip's bytes."""

from __future__ import annotations

import re
from random import Random

_BOXES = (b"moov", b"trak", b"stbl", b"stsz", b"stco", b"stts", b"ctts", b"stsc", b"elst", b"avcC",
          b"tkhd", b"mdhd", b"mvhd", b"mdat", b"moof", b"trun", b"idx1", b"strh", b"strf", b"movi",
          b"\x1a\x45\xdf\xa3", b"\x16\x54\xae\x6b", b"\x1f\x43\xb6\x75")  # fmt: skip


def damage(raw: bytes, other: bytes, random: Random) -> tuple[str, bytes]:
    """A kind of damage, and the damaged file; ``other`` is a clip to splice in."""
    kind = random.choice(
        ["flips", "flips", "cut", "zeros", "noise", "splice", "lie", "lie", "drop", "twice"]
    )
    data = bytearray(raw)
    at = random.randrange(len(data))
    n_bytes = random.choice([1, 16, 188, 500, len(data) // 8 + 1])
    if kind == "flips":
        for _ in range(random.choice([1, 3, 20, 200])):
            place = random.randrange(len(data))
            data[place] ^= 1 << random.randrange(8)
    elif kind == "cut":
        del data[max(1, at) :]
    elif kind == "zeros":
        data[at : at + n_bytes] = bytes(len(data[at : at + n_bytes]))
    elif kind == "noise":
        data[at : at + n_bytes] = random.randbytes(len(data[at : at + n_bytes]))
    elif kind == "splice":
        data[at:] = other[random.randrange(len(other)) :]
    elif kind == "lie":
        _lie(data, random)
    elif kind == "drop":
        del data[at : at + n_bytes]
    else:
        data[at:at] = data[at : at + n_bytes]
    return kind, bytes(data)


def _lie(data: bytearray, random: Random) -> None:
    """Numbers before or behind the name of a box become others: lengths, counts, sizes."""
    names = [match.start() for box in _BOXES for match in re.finditer(re.escape(box), bytes(data))]
    for _ in range(random.choice([1, 1, 3])):
        place = random.choice(names or [random.randrange(len(data))])
        place = max(0, min(len(data) - 4, place + 4 * random.choice([-1, -1, 1, 2, 3, 4, 5])))
        value = random.choice([0, 1, 7, 0x7FFFFFFF, 0xFFFFFFFF, 0x10000000, random.getrandbits(32)])
        data[place : place + 4] = value.to_bytes(4, "big")
