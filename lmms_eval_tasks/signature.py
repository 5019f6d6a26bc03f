"""The signature: everything that moves a score, in one line that travels with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

DISTRIBUTION = "lmms-eval-captions"


@dataclass(frozen=True, slots=True)
class Signature:
    """What a task's score was computed with.

    >>> str(Signature("capquiz", "gpt-4o", 1, 1, 3, 1200, {"prompt": "own"}, "0.1.0"))
    'capquiz|judge:gpt-4o|runs:1|protocol:1|prompt:own|unscored:3/1200|lmms-eval-captions:0.1.0'
    """

    task: str
    judge: str
    runs: int
    protocol: int
    n_unscored: int
    n_questions: int
    """Questions times runs."""
    extras: Mapping[str, str]
    """What else moves this benchmark's score."""
    version: str
    n_empty: int = 0
    """Captions without a word, which count as ones that say nothing; shown where there are any."""
    n_captions: int = 0

    def __str__(self) -> str:
        fields = {
            "judge": self.judge,
            "runs": self.runs,
            "protocol": self.protocol,
            **self.extras,
            **({"empty": f"{self.n_empty}/{self.n_captions}"} if self.n_empty else {}),
            "unscored": f"{self.n_unscored}/{self.n_questions}",
            DISTRIBUTION: self.version,
        }
        return "|".join([self.task, *(f"{name}:{value}" for name, value in fields.items())])


@cache
def package_version() -> str:
    """Version of this package, ``unknown`` where it runs without being installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"
