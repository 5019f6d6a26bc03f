"""VCapsBench: all yes-no questions about a caption in one request."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Reply
from lmms_eval_captions.judges.protocols import reading
from lmms_eval_captions.judges.protocols.asking import JudgeConfig, recall, request_of
from lmms_eval_captions.judges.protocols.reading import UNCLEAR, Unclear
from lmms_eval_captions.judges.verdict import Agreement, AgreementJudgement, YesNo

_LABELS: Final[dict[str, YesNo]] = {"yes": "yes", "no": "no", "unanswerable": "unanswerable"}
_MARK: Final = "@@@"
_MARKS: Final = re.compile("@{2,}")
# Bounded, as several of these stand side by side: no reply may take long to read.
_MARKUP: Final = r"[ \t*_`'\"#>\[\](){}<$-]{0,8}"
_WORD: Final = r"(?P<label>yes|no|unanswerable)\b"
_ANY_LABEL: Final = re.compile(r"\b(?:yes|no|unanswerable)\b", re.IGNORECASE)
_ANSWER: Final = (
    rf"(?:\b|_)(?:answer|final|verdict){_MARKUP}(?:to\s+(?:the|this|that)\s+question{_MARKUP})?"
    rf"(?:\"[^\"\n]{{0,200}}\"\s)?(?:is|would\s+be|must\s+be|:|=|(?<=>)):?\s?{_MARKUP}"
)
_HEAD: Final = re.compile(rf"{_MARKUP}(?:(?:the|my|final)\s+)*(?:{_ANSWER})?{_WORD}", re.IGNORECASE)
_STATED: Final = re.compile(
    rf"(?:{_ANSWER}|\bquestion\s+is\s+(?=unanswerable)){_WORD}", re.IGNORECASE
)
_MARKED: Final = re.compile(rf"(?<![\w-])(yes|no|unanswerable)\s?{_MARK}", re.IGNORECASE)
"""Another answer after an analysis on the same line."""
_LABEL_LINE: Final = re.compile(
    rf"^{_MARKUP}{_WORD}[.!*_` \t]{{0,8}}$", re.IGNORECASE | re.MULTILINE
)
_TAKEN_BACK: Final = re.compile(
    r"^[\s*_]{0,4}(?:wait|actually|correction|sorry|on\s+(?:second\s+thoughts?|reflection))\b",
    re.IGNORECASE | re.MULTILINE,
)
_LINE_STATED: Final = re.compile(
    rf"^{_MARKUP}(?:(?:the|my|final)\s+){{0,3}}{_ANSWER}{_WORD}", re.IGNORECASE | re.MULTILINE
)
_LEADING: Final = re.compile(rf"(?:\A|(?<=\n)|(?<=[.!?]\s)){_MARKUP}{_WORD}", re.IGNORECASE)
_CLEAR: Final = re.compile(
    r"(?![\"'`]\s{0,2}:)[ \t*_`'\"\])}>$]{0,8}"
    r"(?:\Z|[.,;:!\n\u2014<](?![0-9])|\s-(?!>)|(?<=unanswerable)\s(?:from|by|given)\b|\s(?:because|since)\b)",
    re.IGNORECASE,
)
_ANOTHER: Final = re.compile(
    r"[\s*_`'\"\])}.,;:!/|-]{0,8}(?:(?:or|and|but|rather)\s{1,3})?[\"'*]{0,2}(?:yes|no|unanswerable)"
    r"[\"'*]{0,2}\s*(?:\Z|[.,;:!?@\n\])}])",
    re.IGNORECASE,
)
_SAID_OF_LABEL: Final = re.compile(
    r"\s{0,4}(?:is|was|would\s+be|must\s+be|seems?)\s+(?:wrong|incorrect|false|not\s+(?:right|correct|true|the\s+answer))\b",
    re.IGNORECASE,
)
"""An analysis of which the label before the mark is the subject ("Yes@@@ is wrong.")."""
_NEITHER: Final = re.compile(r"\b(?:n?either|both)\s+yes\s+(?:n?or|and)\s+no\b", re.IGNORECASE)
_NO_ANSWER: Final = re.compile(
    r"\b(?:unanswerable|no\s+(?:clear\s+|definite\s+)?answer|(?:can\s?not|can't|could\s+not|impossible\s+to)"
    r"\s+(?:be\s+)?(?:answer|determin|tell|say)\w*)",
    re.IGNORECASE,
)


def read_answer(reply: Reply) -> YesNo | None:
    """The answer in a reply, ``None`` if there is none on the menu, or more than one.

    Labels before every ``@@@``, answers that are named as such, and labels that begin a sentence
    and end in punctuation must all be the same. The analysis after a mark, to the end of its line,
    does not count.

    >>> read_answer(Reply("No@@@The caption says yes to nothing of the kind."))
    'no'
    """
    text = _MARKS.sub(_MARK, reading.plain(reply))
    cut = reading.may_be_cut(reply)
    if _MARK not in text:
        return reading.the_one(list(_prose(text, cut=cut)))
    statements: list[YesNo | Unclear] = []
    before: list[str] = []
    n_marks = 0
    for line in text.split("\n"):
        if n_marks > reading.MOST_STATEMENTS:
            return None
        head, mark, analysis = line.partition(_MARK)
        if not mark:
            before.append(line)
            continue
        if not head.strip("*_` \t"):
            # The mark on a line of its own: the answer is on the one before.
            while before and not before[-1].strip():
                before.pop()
            head = before.pop() if before else ""
        statements += _head(head, "\n".join(before[-2:]))
        if _SAID_OF_LABEL.match(analysis):
            statements.append(UNCLEAR)
        between = "\n".join(before)
        statements += _whole_lines(between, cut=False) if n_marks else _prose(between, cut=False)
        statements += [_LABELS[found[1].casefold()] for found in reading.places(_MARKED, analysis)]
        n_marks += 1
        before = []
    statements += _whole_lines("\n".join(before), cut=cut)
    return reading.the_one(statements)


def _head(head: str, above: str) -> Iterator[YesNo | Unclear]:
    """Read what stands before a mark; nothing if it is the prompt's form."""
    yield from _prose(head, cut=False)
    label = _HEAD.match(head) or next(iter(reading.places(_LEADING, head)[-1:]), None)
    if label is None:
        if _ANY_LABEL.search(head) or not re.fullmatch(
            rf"{_MARKUP}answer{_MARKUP}", head, re.IGNORECASE
        ):
            yield UNCLEAR
        return
    rest = head[label.end("label") :]
    named = label["label"].casefold()
    start = len(above) + 1 + label.start("label")
    whole = f"{above}\n{head}"
    is_unclear = (
        any(found[0].casefold() != named for found in _ANY_LABEL.finditer(rest))
        or not _CLEAR.match(rest)
        or reading.is_doubted(whole, start, start + len(named))
        or reading.is_doubted(f"{above} {head}", start, len(whole))
    )
    yield UNCLEAR if is_unclear else _LABELS[named]


def _whole_lines(text: str, *, cut: bool) -> Iterator[YesNo | Unclear]:
    """Statements below an analysis: lines that name an answer."""
    if _TAKEN_BACK.search(text):
        yield UNCLEAR
    for pattern in (_LINE_STATED, _LABEL_LINE):
        for stated in reading.places(pattern, text):
            yield _statement(stated, text, cut=cut)


def _prose(text: str, *, cut: bool) -> Iterator[YesNo | Unclear]:
    if _NEITHER.search(text):
        yield UNCLEAR
    for stated in reading.places(_STATED, text):
        yield _statement(stated, text, cut=cut)
    for stated in reading.places(_LEADING, text):
        if _CLEAR.match(text, stated.end()) or _ANOTHER.match(text, stated.end()):
            yield _statement(stated, text, cut=cut)


def _statement(stated: re.Match[str], text: str, *, cut: bool) -> YesNo | Unclear:
    label, end = _LABELS[stated["label"].casefold()], stated.end("label")
    rest = text[end : end + 400].partition("\n")[0]
    if (
        not _CLEAR.match(text, end)
        or _ANOTHER.match(text, end)
        or (label != "unanswerable" and _NO_ANSWER.search(rest))
        or (cut and reading.is_last(text, end))
        or reading.is_doubted(text, stated.start(), end)
    ):
        return UNCLEAR
    return label


N_ASKS: Final = 3
"""Requests for each question if the judge's configuration does not say: the paper asks three times
and counts the answer that most replies give. The released script asks once."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of VCapsBench with its gold answer."""

    category: str
    question: str
    answer: YesNo


async def judge_question(
    ask: Ask, question: Question, caption: str, *, config: JudgeConfig, run: int
) -> AgreementJudgement:
    """All requests for one question of one caption, sent together, and their consensus.

    Requests of a judge run have the seeds ``3 run`` to ``3 run + 2``; a single request has the
    first of them, so that asking more often later buys only what is missing.
    """
    seeds = range(N_ASKS * run, N_ASKS * run + (config.asks or N_ASKS))
    name = "vcapsbench_answer"
    asking: list[Awaitable[Asked[YesNo]]] = []
    messages = config.prompts.load(name).render(caption=caption, question=question.question)
    stand_in = partial(_lexical_answer, question.question, caption)
    for seed in seeds:
        request = request_of(name, messages, config=config, seed=seed, stand_in=stand_in)
        asking.append(ask(request, read_answer))
    # Together, so that one batch answers all of them.
    asked = await asyncio.gather(*asking)
    answers = tuple(outcome.value for outcome in asked)
    predicted = consensus(answers)
    shown = asked[::-1] if predicted is None else asked
    return replace(
        silent_judgement(question, run),
        asks=answers,
        predicted_answer=predicted,
        verdict=None if predicted is None else agreement(predicted, question.answer),
        # The first that gives the verdict, else the last unread one.
        reply=next((one.reply for one in shown if one.value == predicted), asked[0].reply),
        **({} if predicted is not None else _why_unscored(asked)),
        cached=all(outcome.cached for outcome in asked),
        usage=sum((outcome.usage for outcome in asked[1:]), asked[0].usage),
    )


def silent_judgement(question: Question, run: int) -> AgreementJudgement:
    """Judge an empty caption: no question can be answered from it."""
    return AgreementJudgement(
        category=question.category,
        question=question.question,
        answer=question.answer,
        run=run,
        asks=(),
        predicted_answer="unanswerable",
        verdict="unanswerable",
    )


def consensus(answers: Sequence[YesNo | None]) -> YesNo | None:
    """The answer that more than half of the replies give: two of three, or the only one.

    Deviation: the paper does not say what counts if no two agree. Three different answers are
    ``unanswerable`` here: the caption does not settle the question. If a reply is unreadable and
    the others do not agree, it could have decided, so the question is unscored: ``None``.

    >>> consensus(["yes", None, "yes"]), consensus(["yes", "no", "unanswerable"])
    ('yes', 'unanswerable')
    >>> consensus(["yes", "no", None]) is None
    True
    """
    most = next((one for one in answers if one and 2 * answers.count(one) > len(answers)), None)
    return most or (None if None in answers else "unanswerable")


def agreement(predicted: YesNo, gold: YesNo) -> Agreement:
    """Compare an answer with the gold one (section 3.4).

    >>> agreement("no", "yes"), agreement("no", "no"), agreement("unanswerable", "yes")
    ('negative', 'positive', 'unanswerable')
    """
    if predicted == "unanswerable":
        return "unanswerable"
    return "positive" if predicted == gold else "negative"


def _lexical_answer(question: str, caption: str) -> str:
    share = recall(question, caption)
    answer = "Yes" if share >= 0.6 else "No" if share >= 0.3 else "Unanswerable"
    return f"{answer}@@@The caption holds {share:.0%} of the question's words."


def _why_unscored(asked: Sequence[Asked[YesNo]]) -> dict[str, Any]:
    failed = [outcome for outcome in asked if outcome.value is None]
    # First reasons that a rerun asks again about: an unreadable reply is kept.
    telling = ([one for one in failed if one.failure != "unreadable"] or failed)[-1]
    some = f"{len(failed)} of {len(asked)} asks failed and no two agree: "
    reason = f"{'' if len(asked) == 1 else some}{telling.reason}"
    return {"reason": reason, "failure": telling.failure}
