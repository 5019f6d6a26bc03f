"""Replies on disk: append-only segments, one per process, that survive a kill at any moment.

Every process appends to a segment of its own and reads all of them, so several processes, on one
machine or on a shared file system, use one store without locks. Each line has a checksum
(:mod:`.line`), which is looked at when a segment is read and again when a reply is: a line
that was cut short, altered or moved is passed over, and what it held is asked again.

A reply is in the operating system's hands before it counts, so a kill loses nothing. It is on the
disk itself when what :meth:`ReplyStore.flushing` gives has been called, as is done every two
seconds: a power cut, or a crash of the whole machine, loses what was answered since.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.store.line import read_line, write_line
from lmms_eval_captions.judges.endpoint.store.places import Place, Places
from lmms_eval_captions.judges.endpoint.store.segment import Segment
from lmms_eval_captions.judges.endpoint.store.segment_writer import SegmentWriter
from lmms_eval_captions.judges.errors import StoreError

_MAX_OPEN: Final = 64
_LOOK_S: Final = 0.05
"""How often it is made sure that the own segment is where it was made."""


class ReplyStore:
    """The replies of one judge model under ``folder``.

    Args:
        folder: Folder of the segments; made when the first reply is written.

    Raises:
        StoreError: If the folder cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index = Places()
        self._segments: list[Segment] = []
        self._numbers: dict[str, int] = {}
        """Names of files to their segments."""
        self._readers: OrderedDict[int, int] = OrderedDict()
        self._own: SegmentWriter | None = None
        self._own_number = -1
        self._looked_s = -inf
        self._n_told: dict[Path, int] = {}
        """Files to how many of their lines were said to be damaged."""
        self._sought: dict[int, int] = {}
        """Segments to how far they had been read when all others were read anew, and they not."""
        self._refreshed_s = -inf
        try:
            self._read_segments()
        except OSError as error:
            raise StoreError(f"cannot read the verdicts under {folder}: {error}") from error

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, key: bytes) -> bool:
        return key in self._index

    def get(self, key: bytes) -> bytes | None:
        """The stored JSON of a reply, or ``None``.

        Raises:
            OSError: If a segment that held it cannot be read any more, and no other one holds it.
        """
        place = self._index.get(key)
        if place is None:
            return None
        segment = self._segments[place[0]]
        try:
            value = self._value(key, place)
        except OSError:
            if self._sought.get(segment.number) == segment.read_to:
                raise  # what no other segment holds was left to this one
        else:
            if value is not None:
                return value
            self._forget(segment)  # it is not what it was when it was read
        if self._own is not None:
            self._keep_own(self._own)
        self._read_segments(anew=True)
        place = self._index.get(key)
        return None if place is None else self._value(key, place)

    def put(self, key: bytes, value: bytes) -> None:
        """Append one reply; it is in the operating system's hands when this returns.

        Args:
            key: 16 bytes.
            value: The reply as JSON, without a line end.

        Raises:
            StoreError: If it could not be written whole (disk full, no permission).
        """
        line = write_line(key, value)
        try:
            start = self._writer().append(line)
        except OSError as error:
            raise StoreError(
                f"cannot write to {self._folder}: {error}; free some space, or point "
                "LMMS_CAPTIONS_CACHE at a folder on another disk (move the old one along to keep "
                "its verdicts), and run again: it goes on where this run stopped"
            ) from error
        self._index.put(key, (self._own_number, start, len(line)))

    def refresh(self, *, max_age_s: float = 0.0) -> None:
        """Take in what other processes have appended since.

        A folder that cannot be read just now is looked at again the next time.

        Args:
            max_age_s: Do nothing where that was done within so many seconds.
        """
        if time.monotonic() - self._refreshed_s < max_age_s:
            return
        try:
            if self._own is not None:
                self._keep_own(self._own)
            self._read_segments()
        except OSError as error:
            logger.debug("{}: {}", self._folder, error)

    def flushing(self) -> Callable[[], None] | None:
        """What brings all that was put to the disk itself, to be called in any thread."""
        return None if self._own is None else self._own.flushing()

    def close(self) -> None:
        """Flush to the disk itself, and close every file."""
        own, self._own = self._own, None
        if own is not None:
            try:
                try:
                    self._keep_own(own)
                finally:
                    own.close()
            except OSError as error:
                logger.error("the last replies under {} may be lost: {}", self._folder, error)
        for descriptor in self._readers.values():
            os.close(descriptor)
        self._readers.clear()

    def _writer(self) -> SegmentWriter:
        """The own segment, where it was made; made now, or again, if it is not there."""
        if self._own is None:
            own = SegmentWriter(self._folder)
            self._own_number = self._segment(own.path.name).number
            self._own = own
        elif time.monotonic() - self._looked_s >= _LOOK_S:
            self._keep_own(self._own)
        return self._own

    def _keep_own(self, own: SegmentWriter) -> None:
        """See that all that was put is still there; where it was removed, write it anew."""
        state, segment = own.look(), self._segments[self._own_number]
        if state == "gone":
            own.move()
            del self._numbers[segment.path.name]
            segment.path = own.path
            self._numbers[own.path.name] = segment.number
            logger.warning(
                "{} was removed or replaced while replies were written to it. Those that this "
                "process wrote are saved again in {}; others that were there are lost",
                self._folder,
                own.path,
            )
        elif state == "changed":
            self._forget(segment)
            self._read_segments(anew=True)
        elif segment.is_behind:
            self._read_new(segment)
        self._looked_s = time.monotonic()

    def _read_segments(self, *, anew: bool = False) -> None:
        """Index what is new; everything where that is asked for, or a segment is not what it was.

        Any other segment may hold an older copy of what such a one does not hold any more.
        """
        self._refreshed_s = time.monotonic()
        try:
            with os.scandir(self._folder) as entries:
                names = sorted(entry.name for entry in entries if entry.name.endswith(".jsonl"))
        except FileNotFoundError:
            return
        # Damage shows in no line of before when it is read; what was asked again counts more.
        segments = sorted(map(self._segment, names), key=Segment.is_checked)
        own = None if self._own is None else self._segments[self._own_number]
        for segment in segments:
            if segment is not own:
                anew = self._read_new(segment) or anew
        if anew:
            # What this process asked counts most.
            for segment in sorted(segments, key=lambda segment: segment is own):
                segment.start_afresh()
                self._read_new(segment)
            lost = set(self._segments) - {whole for whole in segments if not whole.is_behind}
            self._sought = {segment.number: segment.read_to for segment in lost}
        self._report()

    def _segment(self, name: str) -> Segment:
        number = self._numbers.get(name)
        if number is None:
            number = len(self._segments)
            self._segments.append(Segment(self._folder / name, number))
            self._numbers[name] = number
        return self._segments[number]

    def _read_new(self, segment: Segment) -> bool:
        """Index what a segment holds that is new; all of it where it is not what it was.

        Returns:
            Whether it is not what it was.
        """
        state = None
        try:
            state = segment.look()
            if state == "changed":
                self._forget(segment)
            if state != "same":
                self._index.update(segment.read())
        except OSError as error:
            if segment.path not in self._n_told:
                self._n_told[segment.path] = 0
                logger.warning("{} cannot be read and is passed over: {}", segment.path, error)
        return state == "changed"

    def _forget(self, segment: Segment) -> None:
        """Forget what a segment held, which is then to be read anew."""
        self._index.drop(segment.number)
        reader = self._readers.pop(segment.number, None)
        if reader is not None:
            os.close(reader)
        segment.start_afresh()

    def _report(self) -> None:
        """Say, once each, which segments hold lines that are passed over."""
        for segment in self._segments:
            if not segment.n_damaged:
                continue
            n_new = segment.n_damaged - self._n_told.get(segment.path, 0)
            if n_new > 0:
                self._n_told[segment.path] = segment.n_damaged
                logger.warning(
                    "{} line(s) of {} are damaged or cut short; what they held is asked again "
                    "where it is needed",
                    n_new,
                    segment.path,
                )

    def _value(self, key: bytes, place: Place) -> bytes | None:
        """The JSON of a line, ``None`` where another one, or none, stands there now."""
        number, start, n_bytes = place
        if self._own is not None and number == self._own_number:
            line = self._own.read(start, n_bytes)
        else:
            line = os.pread(self._reader(number), n_bytes, start)
        entry = read_line(line)
        return entry[1] if entry is not None and entry[0] == key else None

    def _reader(self, number: int) -> int:
        descriptor = self._readers.get(number)
        if descriptor is None:
            if len(self._readers) >= _MAX_OPEN:
                os.close(self._readers.popitem(last=False)[1])
            descriptor = os.open(self._segments[number].path, os.O_RDONLY | os.O_NONBLOCK)
            self._readers[number] = descriptor
        return descriptor
