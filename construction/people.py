"""People's check of questions: their answers replace the sighted check.

Source: CapQuiz, section 3.2.2 (three criteria, at least three people per question, Gwet's AC1) and
figure 10 (wording). Ours: the other papers print no wording, and get CapQuiz's first two criteria;
the majority decides, for each criterion separately.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from lmms_eval_captions.construction.pipeline import BuildContext, Row, Stage, kept
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import BadLineError, json_lines
from lmms_eval_captions.metrics.agreement import agreement_interval, ratings_of
from lmms_eval_captions.metrics.intervals import Interval

CHECKS: Final = ("people", "sighted", "review")
"""Stages that people replace, or come before."""
PAPER_ANNOTATORS: Final = 3
"""Fewest people per question in CapQuiz, section 3.2.2."""
YES: Final = "yes"
NO: Final = "no"
PAGE_KIND: Final = "question"
"""Kind of exported lines that are about built questions, not captions."""
NOBODY: Final = "people: nobody was asked"
NO_ANSWER: Final = "people: a criterion that nobody could tell"


class Criterion(NamedTuple):
    """A requirement for questions, answered by yes or no."""

    name: str
    asks: str
    """Text that people read; yes is good."""
    dropped: str
    """Reason for dropping a question for which most people say no."""


_RELEVANT: Final = "people: not answerable by the clip alone"
_WRONG: Final = "people: the answer is not right"
_CAPQUIZ: Final = (
    Criterion("visual relevance", "Is the question answerable only using the video?", _RELEVANT),
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
)
_OPEN: Final = (
    Criterion("visual relevance", "Is it answered by the video?", _RELEVANT),
    Criterion("factual correctness", "Is the answer right?", _WRONG),
)
CRITERIA: Final[Mapping[str, tuple[Criterion, ...]]] = {
    "capquiz": _CAPQUIZ,
    "vcapsbench": _OPEN,
    "vdc": _OPEN,
    "vidcapbench": _OPEN,
}
"""Kind of benchmark to its criteria, in the order of asking."""
_KEYS: Final = ("annotator", "question_id", "text_digest", "criterion")


class Answer(NamedTuple):
    """Answer of one person about one criterion of a question, as the person read it."""

    annotator: str
    question_id: str
    text_digest: str
    criterion: str
    said: str | None
    """``yes``, ``no``, or ``None`` if the person could not tell."""


class Exported(NamedTuple):
    """A person's answer, as a page exports it."""

    where: str
    """File and line, for errors."""
    row: Mapping[str, Any]


def exported_lines(path: Path) -> Iterator[Exported]:
    """Yield the lines of a file; :class:`DataError` names a line that cannot be read."""
    try:
        for number, row in json_lines(path):
            if not isinstance(row, dict):
                raise DataError(f"{path}, line {number}: expected a label, got {row!r:.80}")
            yield Exported(f"{path}, line {number}", row)
    except BadLineError as error:
        raise DataError(
            f"{path}, line {error.number}: expected one JSON object per line ({error}), as the "
            "page of lmms-eval-captions label exports them"
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def last_words(
    paths: Iterable[Path], key: Callable[[Exported], tuple[object, ...]]
) -> tuple[list[Exported], int]:
    """Return each person's last answer to each item, and the number of lines that leaves out.

    ``key`` tells who spoke of what; files may hold again what another one holds.
    """
    lines = [line for path in paths for line in exported_lines(path)]
    by_time = sorted(lines, key=lambda line: str(line.row.get("answered_at")))
    last = {key(line): line for line in by_time}
    return [last[name] for name in dict.fromkeys(map(key, lines))], len(lines) - len(last)


def text_digest(row: Mapping[str, object]) -> str:
    """Return a digest of a question, its options (if any) and its answer."""
    text = json.dumps([row["question"], row.get("options"), row["answer"]])
    return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()


def read_answers(paths: Sequence[Path], kind: str) -> list[Answer]:
    """Return the answers in files about a kind, each person's last one per criterion and question.

    Raises:
        DataError: If a file or line cannot be read or is about something else, or all are empty.
    """
    lines, _ = last_words(paths, lambda line: tuple(str(line.row.get(k)).strip() for k in _KEYS))
    if paths and not lines:
        raise DataError(
            f"{', '.join(map(str, paths))}: expected the answers that a page of "
            "lmms-eval-captions label --build exports, got no line; export them again"
        )
    return [_answer(line, kind) for line in lines]


def _answer(line: Exported, kind: str) -> Answer:
    row = line.row
    if row.get("kind") != PAGE_KIND or row.get("benchmark") != kind:
        raise DataError(
            f"{line.where}: expected an answer about a question of build {kind}, got one of kind "
            f"{row.get('kind')!r:.40} about {row.get('benchmark')!r:.40}; give the files that the "
            f"page of lmms-eval-captions label --build exports for {kind}"
        )
    label = row.get("label", "")
    said = label.get("choice") if isinstance(label, dict) else label
    texts = [row.get(name) for name in _KEYS]
    is_text = all(isinstance(text, str) and text.strip() for text in texts)
    is_known = texts[3] in [each.name for each in CRITERIA[kind]] and said in (YES, NO, None)
    if not is_text or not is_known:
        raise DataError(
            f"{line.where}: expected an annotator, a question, a criterion of {kind} and yes or "
            f"no, got {row!r:.300}; export it from the page again"
        )
    annotator, question_id, digest, criterion = (str(text).strip() for text in texts)
    return Answer(annotator, question_id, digest, criterion, said)


class Votes(NamedTuple):
    """Answers of all people about one question."""

    said: Mapping[str, dict[str, str]]
    """Criterion to annotator to ``yes`` or ``no``, without those who could not tell."""
    asked: set[str]
    """Annotators who looked at it, whether they could tell or not."""

    def counts(self, criterion: Criterion) -> tuple[int, int]:
        """Return the number of yes, and of all answers."""
        said = list(self.said[criterion.name].values())
        return said.count(YES), len(said)

    def fault(self, criteria: Sequence[Criterion], fewest: int) -> str | None:
        """Return why a question is dropped: too few answers, or no majority (a tie drops it)."""
        counts = {criterion: self.counts(criterion) for criterion in criteria}
        least = min(n for _, n in counts.values())
        wrong = (of.dropped for of, (n_yes, n) in counts.items() if n >= fewest and 2 * n_yes <= n)
        few = f"people: fewer than {fewest} annotators" if least else NO_ANSWER
        return NOBODY if not self.asked else next(wrong, few if least < fewest else None)


class Matched(NamedTuple):
    """Votes of each question, and answers that are about none of them."""

    votes: list[Votes]
    n_other_text: int
    """Answers about a question whose text, options or answer has changed since."""
    n_other_question: int
    """Answers about a question that does not exist."""


def _match(
    rows: Sequence[Row], answers: Iterable[Answer], criteria: Sequence[Criterion]
) -> Matched:
    votes = {str(row["id"]): Votes({each.name: {} for each in criteria}, set()) for row in rows}
    digests = {str(row["id"]): text_digest(row) for row in rows}
    n_other_text = n_other_question = 0
    for answer in answers:
        of_question = votes.get(answer.question_id)
        if of_question is None:
            n_other_question += 1
        elif answer.text_digest != digests[answer.question_id]:
            n_other_text += 1
        else:
            of_question.asked.add(answer.annotator)
            if answer.said is not None:
                of_question.said[answer.criterion][answer.annotator] = answer.said
    return Matched(list(votes.values()), n_other_text, n_other_question)


class Checked(NamedTuple):
    """Questions that people looked at."""

    rows: list[Row]
    """Questions with their answers, dropped if most say no."""
    matched: Matched
    people: Sequence[str]
    n_shared: int
    """Questions of which at least two people answered the same criterion."""
    ac1: Mapping[str, Interval]
    """Criterion to Gwet's AC1, with its interval over clips; ``nan`` if no two people answered
    the same question."""


def check_by_people(
    rows: Sequence[Row], answers: Iterable[Answer], kind: str, *, fewest: int = 1
) -> Checked:
    """Keep the questions that most people found right by all criteria, if any is about them."""
    criteria = CRITERIA[kind]
    matched = _match(rows, answers, criteria)
    people = [set().union(*votes.said.values()) for votes in matched.votes]
    if not any(people):
        raise DataError(
            f"labels: expected answers about these {len(rows):,} questions, got none that says yes "
            f"or no ({matched.n_other_text:,} are about another text of the question, "
            f"{matched.n_other_question:,} about a question that does not exist); make the page "
            "again with lmms-eval-captions label --build, and have people answer that one"
        )
    checked: list[Row] = []
    for row, votes, names in zip(rows, matched.votes, people, strict=True):
        counts = {criterion.name: list(votes.counts(criterion)) for criterion in criteria}
        check = {"by": "people", "n": len(names), "criteria": counts}
        fault = votes.fault(criteria, fewest)
        checked.append({**row, "check": check} | ({"dropped": fault} if fault else {}))
    everyone = sorted(set().union(*people))
    return Checked(
        checked,
        matched,
        everyone,
        sum(any(len(said) > 1 for said in votes.said.values()) for votes in matched.votes),
        {each.name: _ac1(rows, matched.votes, everyone, each.name) for each in criteria},
    )


def _ac1(
    rows: Sequence[Row], votes: Sequence[Votes], people: Sequence[str], criterion: str
) -> Interval:
    said = [[each.said[criterion].get(name) for name in people] for each in votes]
    clips = np.unique([str(row["video"]) for row in rows], return_inverse=True)[1]
    return agreement_interval(ratings_of(said, (YES, NO)), clips, coefficient="ac1")


def n_few(rows: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of questions checked by fewer people than in the paper."""
    checks = [row["check"] for row in rows if "check" in row]
    return sum(
        min(n for _, n in check["criteria"].values()) < PAPER_ANNOTATORS
        for check in checks
        if check["by"] == "people"
    )


def _people_check(context: BuildContext, rows: list[Row]) -> list[Row]:
    options = context.options
    answers = read_answers(options.labels, options.kind)
    checked = check_by_people(rows, answers, options.kind, fewest=options.annotators)
    ac1 = {name: round(found.value, 4) for name, found in checked.ac1.items()}
    agreement = {
        "n_people": len(checked.people),
        "n_shared": checked.n_shared,
        "ac1": {name: value for name, value in ac1.items() if not isnan(value)},
    }
    made = [row if "dropped" in row else {**row, "agreement": agreement} for row in checked.rows]
    faults, few = context.tally.faults, n_few(kept(made))
    faults["answers about another text of a question"] += checked.matched.n_other_text
    faults["answers about questions that do not exist"] += checked.matched.n_other_question
    faults[f"kept by fewer than {PAPER_ANNOTATORS} annotators"] += few
    return made


PEOPLE: Final = Stage(
    "people",
    "keep the questions that most annotators found right by all criteria",
    _people_check,
    options=("labels", "annotators"),
)
"""Stage that reads people's answers."""
