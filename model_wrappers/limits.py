"""How long, and how much memory, the reading of one clip may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one clip may cost; beyond it the clip is given up."""

    timeout_s: float = 300.0
    """Seconds of reading and decoding, above 0."""
    memory_gib: float = 4.0
    """Memory of the process that decodes, in GiB, above 0; held on Linux."""

    def __post_init__(self) -> None:
        for name, value in (("timeout_s", self.timeout_s), ("memory_gib", self.memory_gib)):
            if not 0 < value < float("inf"):
                raise ValueError(f"expected {name} above 0, got {value!r}")
