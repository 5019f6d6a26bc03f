"""What people's answers say of questions that were built, before they are built with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isnan
from pathlib import Path

from lmms_eval_captions.analysis.label.built_questions import BuiltQuestions
from lmms_eval_captions.analysis.label.report import Report
from lmms_eval_captions.lmms_eval_tasks.commands.building.answers import read_answers
from lmms_eval_captions.lmms_eval_tasks.commands.building.criteria import (
    CRITERIA,
    PAPER_ANNOTATORS,
    Criterion,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.people import (
    Checked,
    check_by_people,
    n_few,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.votes import Votes
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import kept
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table
from lmms_eval_captions.metrics.intervals import Interval


def built_report(paths: Sequence[Path], questions: BuiltQuestions, *, fewest: int) -> Report:
    """Agreement by each criterion, and which questions would be kept.

    Args:
        paths: Files that pages have exported.
        questions: What people were asked about.
        fewest: Annotators that a question needs, >= 1.

    Raises:
        DataError: If a file cannot be read, or has no answer about these questions.
    """
    criteria = CRITERIA[questions.kind]
    answers = read_answers(paths, questions.kind)
    checked = check_by_people(questions.rows, answers, questions.kind, fewest=fewest)
    rows = kept(checked.rows)
    dropped = Counter(str(row["dropped"]) for row in checked.rows if "dropped" in row)
    lines = [
        f"{len(questions.rows):,} questions of the stage {questions.stage!r}; "
        f"{checked.n_shared:,} were answered by at least 2 of {len(checked.people)} people",
        "",
        *text_table(list(_criterion_rows(checked, criteria)), n_left=1),
        "AC1: Gwet's, 1 is full agreement, 0 is chance; 95 % intervals over clips.",
        "",
        *text_table(list(_person_rows(checked, criteria)), n_left=1),
        "",
        f"kept: {len(rows):,} of {len(questions.rows):,} questions",
        *(f"  dropped: {n:,} x {reason}" for reason, n in dropped.most_common()),
        *_notes(checked),
    ]
    document = {
        "kind": questions.kind,
        "stage": questions.stage,
        "n_questions": len(questions.rows),
        "n_kept": len(rows),
        "n_kept_by_few": n_few(rows),
        "n_shared": checked.n_shared,
        "annotators": list(checked.people),
        "dropped": dict(dropped),
        "criteria": {
            criterion.name: {
                "n_answered": _n_answered(checked.matched.votes, criterion),
                "n_yes": _n_yes(checked.matched.votes, criterion),
                "ac1": asdict(checked.ac1[criterion.name]),
            }
            for criterion in criteria
        },
        "n_other_text": checked.matched.n_other_text,
        "n_other_question": checked.matched.n_other_question,
    }
    return Report(lines, {"built": document})


def _n_answered(votes: Sequence[Votes], criterion: Criterion) -> int:
    return sum(each.counts(criterion)[1] > 0 for each in votes)


def _n_yes(votes: Sequence[Votes], criterion: Criterion) -> int:
    counts = [each.counts(criterion) for each in votes]
    return sum(2 * n_yes > n for n_yes, n in counts)


def _criterion_rows(checked: Checked, criteria: Sequence[Criterion]) -> Iterator[tuple[str, ...]]:
    yield "criterion", "questions answered", "most say yes", "AC1"
    for criterion in criteria:
        yield (
            criterion.name,
            f"{_n_answered(checked.matched.votes, criterion):,}",
            f"{_n_yes(checked.matched.votes, criterion):,}",
            _shown(checked.ac1[criterion.name]),
        )


def _person_rows(checked: Checked, criteria: Sequence[Criterion]) -> Iterator[tuple[str, ...]]:
    """How often each person says yes: who says so of all, or of none, stands out."""
    yield "annotator", *(f"yes: {criterion.name}" for criterion in criteria)
    for name in checked.people:
        cells = []
        for criterion in criteria:
            said = [
                votes.said[criterion.name][name]
                for votes in checked.matched.votes
                if name in votes.said[criterion.name]
            ]
            cells.append(f"{said.count('yes'):,} of {len(said):,}")
        yield name, *cells


def _shown(found: Interval) -> str:
    if isnan(found.value):
        return "-"
    ends = "" if found.low is None else f" [{found.low:.3f}, {found.high:.3f}]"
    return f"{found.value:.3f}{ends}"


def _notes(checked: Checked) -> Iterator[str]:
    matched = checked.matched
    if matched.n_other_text:
        yield (
            f"note: {matched.n_other_text:,} answers are not used: question, options or answer "
            "have changed since"
        )
    if matched.n_other_question:
        yield (
            f"note: {matched.n_other_question:,} answers are not used: their question is not there"
        )
    few = n_few(kept(checked.rows))
    if few:
        yield (
            f"note: {few:,} of the questions that are kept were answered by fewer than "
            f"{PAPER_ANNOTATORS} people; in the paper at least {PAPER_ANNOTATORS} look at each"
        )
