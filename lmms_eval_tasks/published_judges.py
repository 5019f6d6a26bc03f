"""Who judged the numbers that papers print, with where that is said."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedJudge:
    """Who judged one set of published numbers; ``docs/published-judges.md`` shows all of them."""

    numbers: str
    """Which ones."""
    judge: str
    source: str
    """Where that is said, and in which words."""
