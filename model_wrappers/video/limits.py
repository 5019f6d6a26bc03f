"""How long, and how much memory, the reading of one clip may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_MOST: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What one clip may cost; beyond it the clip is given up."""

    timeout_s: float = 300.0
    """Seconds of reading and decoding, above 0, at most a million."""
    memory_gib: float = 4.0
    """Memory of the process that decodes, in GiB, above 0, at most a million, besides the frames
    that were asked for and what the process keeps of earlier clips to use again (0.25 GiB at
    most, so that a clip near the limit may pass after a large one); held on Linux."""

    def __post_init__(self) -> None:
        for name, value in (("timeout_s", self.timeout_s), ("memory_gib", self.memory_gib)):
            if not 0 < value <= _MOST:
                raise ValueError(f"expected {name} above 0, at most {_MOST}, got {value!r}")


DEFAULT_LIMITS: Final = Limits()
