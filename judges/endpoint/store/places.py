"""Where each stored reply stands: a table that a process can hold for millions of replies."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

Place = tuple[int, int, int]
"""Where a line stands: number of its segment, first byte within the file, length with its end."""

_N_BUCKETS: Final = 1 << 16
_KEY_BYTES: Final = 16
_RECORD: Final = Struct(f"<{_KEY_BYTES}sIQI")
_PLACE: Final = Struct("<IQI")


class Places:
    """Keys of 16 bytes, which are digests, to places, in a fourth of the memory of a ``dict``.

    Some 50 bytes each. Those that begin alike stand behind each other in one array, which is
    searched from its start: a microsecond, even where there are a hundred of them, as of seven
    million keys in all. Nothing has to be built anew as the table grows.
    """

    def __init__(self) -> None:
        self._buckets: list[bytearray | None] = [None] * _N_BUCKETS
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def get(self, key: bytes) -> Place | None:
        """The place of a key, ``None`` where there is none."""
        bucket = self._buckets[key[0] << 8 | key[1]]
        at = -1 if bucket is None else _find(bucket, key)
        if bucket is None or at < 0:
            return None
        number, start, n_bytes = _PLACE.unpack_from(bucket, at + _KEY_BYTES)
        return number, start, n_bytes

    def put(self, key: bytes, place: Place) -> None:
        """Set the place of a key."""
        letters = key[0] << 8 | key[1]
        bucket = self._buckets[letters]
        if bucket is None:
            bucket = self._buckets[letters] = bytearray()
        at = _find(bucket, key)
        if at < 0:
            bucket += _RECORD.pack(key, *place)
            self._n += 1
        else:
            _PLACE.pack_into(bucket, at + _KEY_BYTES, *place)

    def update(self, entries: Iterable[tuple[bytes, Place]]) -> None:
        """Set the places of several keys, the last one where a key comes again."""
        for key, place in entries:
            self.put(key, place)

    def drop(self, number: int) -> None:
        """Forget all that stands in one segment."""
        self._n = 0
        for letters, bucket in enumerate(self._buckets):
            if bucket is not None:
                kept = [record for record in _RECORD.iter_unpack(bucket) if record[1] != number]
                self._buckets[letters] = bytearray().join(_RECORD.pack(*record) for record in kept)
                self._n += len(kept)


def _find(bucket: bytearray, key: bytes) -> int:
    """First byte of a key's record, -1 where there is none."""
    at = bucket.find(key)
    while at > 0 and at % _RECORD.size:  # it looks like part of other records
        at = bucket.find(key, at + 1)
    return at
