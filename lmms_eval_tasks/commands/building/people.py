"""The people's step: what annotators said takes the place of the sighted check.

Source: CapQuiz, section 3.2.2: at least three people look at each question, by three criteria, and
Gwet's AC1 tells how far they agree. How their answers are taken together is not printed: ours is
the majority, by each criterion for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final

import numpy as np

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.building.answers import (
    NO,
    YES,
    Answer,
    read_answers,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.criteria import (
    CRITERIA,
    PAPER_ANNOTATORS,
    Criterion,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import Stage
from lmms_eval_captions.lmms_eval_tasks.commands.building.votes import (
    Matched,
    Votes,
    fault_of,
    match,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Work
from lmms_eval_captions.metrics.agreement import agreement_interval, ratings_of
from lmms_eval_captions.metrics.intervals import Interval

BY_PEOPLE: Final = "people"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Questions that people looked at."""

    rows: list[Row]
    """Each with what was said of it, dropped where most say no."""
    matched: Matched
    people: Sequence[str]
    n_shared: int
    """Questions that at least two annotators could tell, by the same criterion."""
    ac1: Mapping[str, Interval]
    """Criterion to Gwet's AC1, with its interval over clips; ``nan`` where no two annotators could
    tell of the same question."""

    def agreement(self) -> dict[str, Any]:
        """What stands in the rows that are kept."""
        known = {name: round(found.value, 4) for name, found in self.ac1.items()}
        return {
            "n_people": len(self.people),
            "n_shared": self.n_shared,
            "ac1": {name: value for name, value in known.items() if not isnan(value)},
        }


def check_by_people(
    rows: Sequence[Row], answers: Iterable[Answer], kind: str, *, fewest: int = 1
) -> Checked:
    """Keep the questions that most annotators found right by all criteria.

    Args:
        rows: Questions, none of them dropped.
        answers: What annotators said, see :func:`.read_answers`.
        kind: The benchmark that is built.
        fewest: Annotators that a question needs, >= 1.

    Raises:
        DataError: If no answer is about any of these questions as they are now.
    """
    criteria = CRITERIA[kind]
    matched = match(rows, answers, criteria)
    people = sorted({name for votes in matched.votes for name in votes.people})
    if not people:
        raise DataError(
            f"labels: expected answers about these {len(rows):,} questions, got none that says yes "
            f"or no ({matched.n_other_text:,} are of another text than the question has now, "
            f"{matched.n_other_question:,} of a question that is not there); make the page anew "
            "with lmms-eval-captions label --build, and have people answer that one"
        )
    told = [
        _checked(row, votes, criteria, fewest)
        for row, votes in zip(rows, matched.votes, strict=True)
    ]
    return Checked(
        rows=told,
        matched=matched,
        people=people,
        n_shared=sum(votes.most >= 2 for votes in matched.votes),
        ac1={
            criterion.name: _ac1(rows, matched.votes, people, criterion) for criterion in criteria
        },
    )


def n_few(rows: Iterable[Mapping[str, Any]]) -> int:
    """Questions that fewer people could tell than look at each in the paper.

    Args:
        rows: Questions; those that no person checked do not count.
    """
    checks = [row["check"] for row in rows if "check" in row]
    return sum(
        min(n for _, n in check["criteria"].values()) < PAPER_ANNOTATORS
        for check in checks
        if check["by"] == BY_PEOPLE
    )


def people_check(work: Work, rows: list[Row]) -> list[Row]:
    """Questions with what people said, dropped where most say no."""
    if work.is_rehearsal:
        return rows  # nobody looks at the questions that an estimate makes up
    options = work.options
    answers = read_answers(options.labels, options.kind)
    checked = check_by_people(rows, answers, options.kind, fewest=options.annotators)
    agreement = checked.agreement()
    made = [row if "dropped" in row else {**row, "agreement": agreement} for row in checked.rows]
    faults = work.tally.faults
    faults["answers of people about another text"] += checked.matched.n_other_text
    faults["answers of people about questions that are not there"] += (
        checked.matched.n_other_question
    )
    faults[f"kept by fewer than {PAPER_ANNOTATORS} annotators"] += n_few(
        row for row in made if "dropped" not in row
    )
    return made


PEOPLE: Final = Stage(
    name="people",
    does="keep the questions that most annotators found right by all criteria",
    run=people_check,
    options=("labels", "annotators"),
)
"""Reads people's answers."""


def _checked(row: Row, votes: Votes, criteria: Sequence[Criterion], fewest: int) -> Row:
    counts = {criterion.name: list(votes.counts(criterion)) for criterion in criteria}
    check = {"by": BY_PEOPLE, "n": len(votes.people), "criteria": counts}
    fault = fault_of(votes, criteria, fewest)
    return {**row, "check": check} | ({"dropped": fault} if fault else {})


def _ac1(
    rows: Sequence[Row], votes: Sequence[Votes], people: Sequence[str], criterion: Criterion
) -> Interval:
    said = [[each.said[criterion.name].get(name) for name in people] for each in votes]
    clips = np.unique([str(row["video"]) for row in rows], return_inverse=True)[1]
    return agreement_interval(ratings_of(said, (YES, NO)), clips, coefficient="ac1")
