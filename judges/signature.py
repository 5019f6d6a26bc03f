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

    >>> str(Signature("vdc_camera", "gpt-4o-2024-08-06", 1, 1, 3, 19112, {"cut": "4"}, "0.1.0"))
    'vdc_camera|judge:gpt-4o-2024-08-06|runs:1|protocol:1|cut:4|unscored:3/19112|lmms-eval-captions:0.1.0'
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

    def __str__(self) -> str:
        fields = {
            "judge": self.judge,
            "runs": self.runs,
            "protocol": self.protocol,
            **self.extras,
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
