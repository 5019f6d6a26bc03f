"""Captions with planted facts, and how a benchmark asks its judge about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

Q = TypeVar("Q")
"""A benchmark's question."""
J = TypeVar("J")
"""A benchmark's judgement."""

Relation = Literal["states", "contradicts", "silent"]
"""The caption states the truth, states something else, or does not mention it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedFact:
    """A fact of a made-up video, and a caption that states, contradicts or omits it."""

    name: str
    kind: str
    """Topic, such as ``colour``."""
    relation: Relation
    caption: str
    """Several sentences, 110 to 180 words."""
    question: str
    """Open question about the fact."""
    truth: str
    said: str
    """The caption's answer, in the words of the options; empty if it has none."""
    claim: str
    """Yes-no question about the fact."""
    claim_is_true: bool
    options: tuple[str, ...]
    """Five answers, the truth and the caption's among them."""
    references: tuple[str, ...]
    """Short true sentences about the video."""
    short_caption: str
    """A short sentence: about the video if the relation is ``states``, else about another one."""


@dataclass(frozen=True, slots=True)
class Anchor(Generic[Q]):
    """A question whose right verdict is known."""

    question: Q
    caption: str
    verdict: str
    """Right verdict, a value of :attr:`Verification.said`."""


@dataclass(frozen=True, slots=True)
class Verification(Generic[Q, J]):
    """How a benchmark asks its judge about a planted fact."""

    anchor: Callable[[PlantedFact], Anchor[Q]]
    said: Callable[[J], str | None]
    """Verdict of a judgement; ``None`` if unscored."""
