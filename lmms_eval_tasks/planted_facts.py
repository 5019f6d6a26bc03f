"""Facts that captions of our own state, contradict or leave out, and what a judge must say then.

The captions are made by code (``commands/judge_verify``), so that the right verdict on each
question follows from how it is built; a few, of values that do not quite exclude each other, can be
debated. A benchmark says how it asks about such a fact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from lmms_eval_captions.lmms_eval_tasks.published_judges import PublishedJudge

Q = TypeVar("Q")
"""A benchmark's question."""
J = TypeVar("J")
"""Its judgement."""

Relation = Literal["states", "contradicts", "silent"]
"""What a caption does with the truth of its video: says it, says something else, says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedFact:
    """One fact of a made-up video, and a caption that states, contradicts or leaves it out."""

    name: str
    """Tells it from all others of its version."""
    kind: str
    """What it is about, such as ``colour``."""
    relation: Relation
    is_subtle: bool
    """Whether it takes a synonym, a negation, a near number or a distractor to tell."""
    caption: str
    """Several sentences, 110 to 180 words."""
    evidence: str
    """The sentence of the caption that speaks of it; empty where none does."""
    question: str
    """An open question about it."""
    truth: str
    """What is true of the video."""
    said: str
    """What the caption says, in the words of the options; empty where it says nothing."""
    claim: str
    """A yes-no question about it."""
    claim_is_true: bool
    """Whether the video has it so."""
    options: tuple[str, ...]
    """Five different answers to the open question, the truth and what the caption says among them.
    """
    references: tuple[str, ...]
    """Short sentences that are true of the video."""
    short_caption: str
    """A short sentence: true of the video where the relation is ``states``, else of another one."""


@dataclass(frozen=True, slots=True)
class Anchor(Generic[Q]):
    """A question whose right verdict is known."""

    question: Q
    caption: str
    verdict: str
    """What a judge must say, as :attr:`Verification.said` has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification(Generic[Q, J]):
    """How a benchmark asks its judge about a planted fact."""

    anchor: Callable[[PlantedFact], Anchor[Q]]
    said: Callable[[J], str | None]
    """The verdict of a judgement, of few different words; ``None`` is unscored."""
    needs_logprobs: bool = False
    """Whether the benchmark's scores are read from log-probabilities, where there are any."""
    numbers: Callable[[J], float | None] = lambda _judgement: None
    """A finer reading of the same judgement, in [0, 100], where the benchmark has one."""
    published: tuple[PublishedJudge, ...] = ()
    """Who judged the benchmark's published numbers."""
