"""A picture that a request shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Picture:
    """An encoded picture, as it goes to a judge."""

    data: bytes
    media_type: str
    """``image/jpeg``, ``image/png`` and the like."""
