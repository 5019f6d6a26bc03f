"""What people are asked about a question that was built, and why one is dropped that fails.

Source: CapQuiz, section 3.2.2 (three criteria) and figure 10 (their words). VCapsBench (section
3.3), VDC and VidCapBench print no words: the first two of CapQuiz, which hold for any question with
an answer, in words of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

CHECKS: Final = ("people", "sighted", "review")
"""Stages that people take the place of, or come before."""
PAPER_ANNOTATORS: Final = 3
"""Fewest people who look at each question in CapQuiz, section 3.2.2."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that a question must be, told by yes or no."""

    name: str
    asks: str
    """What people read; yes is good."""
    dropped: str
    """Why a question is dropped for which most people say no."""


_RELEVANT: Final = "people: not answerable by the clip alone"
_WRONG: Final = "people: the answer is not right"
_OPEN: Final = (
    Criterion("visual relevance", "Is it answered by the video?", _RELEVANT),
    Criterion("factual correctness", "Is the answer right?", _WRONG),
)
CRITERIA: Final[Mapping[str, tuple[Criterion, ...]]] = {
    "capquiz": (
        Criterion(
            "visual relevance", "Is the question answerable only using the video?", _RELEVANT
        ),
        Criterion(
            "factual correctness",
            "Is there a clear answer, and are all other options incorrect?",
            _WRONG,
        ),
        Criterion(
            "question difficulty",
            "Is any incorrect option believable?",
            "people: no believable wrong option",
        ),
    ),
    "vcapsbench": _OPEN,
    "vdc": _OPEN,
    "vidcapbench": _OPEN,
}
"""Kind of benchmark to its criteria, in the order in which they are asked."""
