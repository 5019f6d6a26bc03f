"""What a person is asked in the judge's place, and how the answer is read as a judgement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Logged = Mapping[str, Any]
"""A judgement as sample logs hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of the answers that a person chooses from."""

    key: str
    """The key that chooses it."""
    name: str
    """What the label holds."""
    text: str
    """What is shown, with what it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """A number that a person gives."""

    name: str
    low: float
    high: float
    text: str
    """What is shown, with what it means."""
    is_optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a person says of one question and caption, or what the judge said in the same terms."""

    choice: str | None = None
    ratings: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """The judge's task, as a person is given it."""

    asks: str
    """What to do, a sentence or two."""
    choices: tuple[Choice, ...] = ()
    """Empty where there are none, or where each question has its own."""
    ratings: tuple[Rating, ...] = ()
    shows_answer: bool = True
    """Whether the gold answer is shown; ``False`` where the question is to be answered from the
    caption alone: answer and frames are hidden then until it is."""
    choices_of: Callable[[Mapping[str, Any], int], tuple[Choice, ...]] | None = None
    """A question's own choices, from the document and the question's place in it."""
    references: Callable[[Mapping[str, Any]], Sequence[str]] = lambda _doc: ()
    """Reference captions of a document that the person is shown."""
    needs_data: bool = False
    """Whether a question cannot be shown without the benchmark's own files."""
    of_judge: Callable[[Logged], Label | None]
    """What the judge said; ``None`` where it is unscored."""
    judgement: Callable[[Logged, Label], Mapping[str, object]]
    """Fields of the judgement that hold what the person said, in place of the judge's."""


def of_verdict(logged: Logged) -> Label | None:
    """What a judge said that gives a verdict."""
    verdict = logged["verdict"]
    return None if verdict is None else Label(choice=str(verdict))


def as_verdict(_logged: Logged, label: Label) -> Mapping[str, object]:
    """The judgement of a person who gives a verdict."""
    return {"verdict": label.choice}
