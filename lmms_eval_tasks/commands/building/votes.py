"""What annotators said of each question, and whether it stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.commands.building.answers import (
    YES,
    Answer,
    text_digest,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.criteria import Criterion

NOBODY: Final = "people: nobody was asked"
NO_ANSWER: Final = "people: a criterion that nobody could tell"


@dataclass(frozen=True, slots=True)
class Votes:
    """What annotators said of one question."""

    said: Mapping[str, Mapping[str, str]]
    """Criterion to annotator to ``yes`` or ``no``; who could not tell is left out."""
    n_asked: int
    """Annotators who looked at it, whether they could tell or not."""

    def counts(self, criterion: Criterion) -> tuple[int, int]:
        """How many say yes, and how many say either."""
        said = list(self.said[criterion.name].values())
        return said.count(YES), len(said)

    @property
    def fewest(self) -> int:
        """Annotators who could tell, by the criterion that has the fewest."""
        return min(map(len, self.said.values()))

    @property
    def most(self) -> int:
        """The same, by the criterion that has the most."""
        return max(map(len, self.said.values()))

    @property
    def people(self) -> set[str]:
        """Everyone who could tell by one criterion at least."""
        return {name for of_people in self.said.values() for name in of_people}


@dataclass(slots=True)
class Matched:
    """Answers beside the questions that they are about."""

    votes: list[Votes] = field(default_factory=list)
    """Of each question, in order."""
    n_other_text: int = 0
    """Answers about a question whose text, options or answer has changed since."""
    n_other_question: int = 0
    """Answers about a question that is not there."""


def match(
    rows: Sequence[Mapping[str, Any]], answers: Iterable[Answer], criteria: Sequence[Criterion]
) -> Matched:
    """Find the question of each answer; what was said of another text is not used.

    Args:
        rows: Questions of a stage.
        answers: One of each annotator about each question by each criterion.
        criteria: By which they were asked.
    """
    digests = {str(row["id"]): text_digest(row) for row in rows}
    said: dict[str, dict[str, dict[str, str]]] = {
        name: {criterion.name: {} for criterion in criteria} for name in digests
    }
    asked: dict[str, set[str]] = {name: set() for name in digests}
    matched = Matched()
    for answer in answers:
        if answer.question_id not in digests:
            matched.n_other_question += 1
        elif answer.text_digest != digests[answer.question_id]:
            matched.n_other_text += 1
        else:
            asked[answer.question_id].add(answer.annotator)
            if answer.said is not None:
                said[answer.question_id][answer.criterion][answer.annotator] = answer.said
    matched.votes = [Votes(said[str(row["id"])], len(asked[str(row["id"])])) for row in rows]
    return matched


def fault_of(votes: Votes, criteria: Sequence[Criterion], fewest: int) -> str | None:
    """Why a question is dropped, ``None`` where it stays.

    It stays where by each criterion at least so many annotators could tell, and more say yes than
    no: a tie drops it.

    Args:
        votes: What annotators said of it.
        criteria: In the order in which the first that fails is named.
        fewest: Annotators that each criterion needs, >= 1.
    """
    if not votes.n_asked:
        return NOBODY
    counts = [votes.counts(criterion) for criterion in criteria]
    for criterion, (n_yes, n) in zip(criteria, counts, strict=True):
        if n >= fewest and 2 * n_yes <= n:
            return criterion.dropped
    if votes.fewest >= fewest:
        return None
    return NO_ANSWER if not votes.fewest else f"people: fewer than {fewest} annotators"
