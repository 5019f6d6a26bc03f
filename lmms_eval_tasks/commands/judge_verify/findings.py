"""What was found out about an endpoint: each with what speaks for it, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    needs_skill: bool = False
    """Whether a weak judge looks so by itself, whatever its endpoint does."""

    def to_json(self) -> dict[str, str]:
        """As an object of JSON."""
        return {
            "name": self.name,
            "state": self.state,
            "evidence": self.evidence,
            "advice": self.advice,
        }

    def of_weak_judge(self) -> Finding:
        """The same where the judge is weak: what that explains is a note."""
        if not self.needs_skill or self.state != "differs":
            return self
        words = f"{self.evidence}; so weak a judge may look like that by itself"
        return replace(self, state="note", evidence=words)


def names_of(findings: Sequence[Finding]) -> list[str]:
    """What fails the endpoint, each once."""
    return list(dict.fromkeys(each.name for each in findings if each.state == "differs"))


def unknown(name: str, why: str) -> Finding:
    """A finding of which nothing can be said."""
    return Finding(name=name, state="unknown", evidence=why)
