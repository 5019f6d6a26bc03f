"""What was found out about an endpoint: each with what speaks for it, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

FindingState = Literal["ok", "differs", "note", "unknown"]
"""As it should be; not so, which fails the endpoint; worth knowing; nothing can be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    name: str
    """What it is about, such as ``truncation``."""
    state: FindingState
    evidence: str
    """What was seen."""
    advice: str = ""
    """What to do, empty where nothing is to be done."""

    def to_json(self) -> dict[str, str]:
        """As an object of JSON."""
        return asdict(self)


def names_of(findings: Sequence[Finding]) -> list[str]:
    """What fails the endpoint, each once."""
    return list(dict.fromkeys(each.name for each in findings if each.state == "differs"))


def unknown(name: str, why: str) -> Finding:
    """A finding of which nothing can be said."""
    return Finding(name=name, state="unknown", evidence=why)
