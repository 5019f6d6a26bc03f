"""One line of a segment: a key, a checksum over key and reply, and the reply as JSON.

``<key, 32 hexadecimal digits>-<checksum, 8>{...}`` and a line end. The checksum is the CRC-32 of
the key as written and the JSON behind it, so whatever is altered, the key included, is found out.
Lines of earlier versions have a space in place of the checksum, and are read. No part of a line
with a checksum looks like one without, so damage cannot turn the one into the other.
"""

from __future__ import annotations

import re
from binascii import unhexlify
from typing import Final
from zlib import crc32

KEY_LETTERS: Final = 32
"""Letters of a key; what follows tells a checksum from none."""
MAX_LINE_BYTES: Final = 64 << 20
"""Longer lines are passed over: an answer of 16 MiB is at most 48 MiB of JSON."""

_LINE: Final = re.compile(rb"([0-9a-f]{32})(?:-([0-9a-f]{8})| )(\{.*\})\r?\n", re.DOTALL)


def write_line(key: bytes, value: bytes) -> bytes:
    r"""The line of a reply, with its end.

    Args:
        key: 16 bytes.
        value: JSON of an object, in one line.

    >>> write_line(bytes(16), b"{}")
    b'00000000000000000000000000000000-3c9f28c6{}\n'
    """
    name = key.hex().encode("ascii")
    return b"%s-%08x%s\n" % (name, crc32(value, crc32(name)), value)


def read_line(line: bytes) -> tuple[bytes, bytes] | None:
    r"""Key and JSON of a line, ``None`` for one that is damaged, cut short or something else.

    Args:
        line: With its end, which another program may have made ``\r\n``.

    >>> read_line(write_line(bytes(16), b"{}"))[1]
    b'{}'
    >>> read_line(write_line(bytes(16), b'{"a":1}').replace(b"1", b"2")) is None
    True
    """
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    name, checksum, value = match.groups()
    if checksum is not None and int(checksum, 16) != crc32(value, crc32(name)):
        return None
    return unhexlify(name), value
