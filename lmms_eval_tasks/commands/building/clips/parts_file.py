"""What was found out about each source, kept so that a run that was ended goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import parse_json, read_whole, write_atomically
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.scenes import Span

_VERSION: Final = 1
"""Raised with every change of how scenes are found or motion is measured."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a source that may become a clip, or a scene that is too short to."""

    span: Span
    frames: tuple[int, int]
    """Position in the source of its first frame, and of the one behind its last."""
    motion: float
    """As :func:`motion_within` has it; ``nan`` where it was not measured."""
    is_long_enough: bool


@dataclass(frozen=True, slots=True)
class SourceParts:
    """One source, looked at."""

    n_scenes: int
    parts: tuple[Part, ...]
    error: str | None = None
    """Why it could not be read, else ``None``."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long clips may be."""

    min_s: float = 3.0
    max_s: float = 15.0

    def __post_init__(self) -> None:
        if not 0.1 <= self.min_s <= self.max_s <= 86_400:
            raise SettingsError(
                "expected --min-s of at least 0.1 and --max-s of at least --min-s, got "
                f"{self.min_s:g} and {self.max_s:g}"
            )


class PartsFile:
    """A folder of one JSON file per source.

    Args:
        folder: Made where it is not there.
        lengths: Of clips; what was found out for others is not used.
    """

    def __init__(self, folder: Path, lengths: Lengths) -> None:
        self._folder = folder
        self._lengths = lengths

    def load(self, stem: str, source: Path) -> SourceParts | None:
        """What is kept of a source, ``None`` where nothing is, or the file has changed since."""
        try:
            document = parse_json(read_whole(self._path(stem)))
            if not isinstance(document, dict) or document["key"] != self._key(source):
                return None
            parts = tuple(_part(row) for row in document["parts"])
            return SourceParts(int(document["n_scenes"]), parts)
        except (OSError, ValueError, TypeError, KeyError):
            return None  # it is made anew

    def save(self, stem: str, source: Path, found: SourceParts) -> None:
        """Keep what was found out about a source.

        Raises:
            DataError: If it cannot be written.
        """
        rows = [
            {**asdict(part), "motion": None if isnan(part.motion) else part.motion}
            for part in found.parts
        ]
        document = {"key": self._key(source), "n_scenes": found.n_scenes, "parts": rows}
        try:
            write_atomically(self._path(stem), json.dumps(document).encode("ascii"))
        except OSError as error:
            raise DataError(f"{self._folder} cannot be written: {error}") from error

    def _path(self, stem: str) -> Path:
        return self._folder / f"{stem}.json"

    def _key(self, source: Path) -> dict[str, object]:
        status = source.stat()
        lengths = asdict(self._lengths)
        return {
            "version": _VERSION,
            "path": str(source.resolve()),
            "bytes": status.st_size,
            "changed_ns": status.st_mtime_ns,
            **lengths,
        }


def _part(row: Mapping[str, Any]) -> Part:
    (start_s, end_s), (first, end) = row["span"], row["frames"]
    motion = row["motion"]
    return Part(
        (float(start_s), float(end_s)),
        (int(first), int(end)),
        nan if motion is None else float(motion),
        row["is_long_enough"] is True,
    )
