"""Words of captions and reference captions, measured for the classic metrics.

Their Java programs take seconds to start, and CIDEr weighs n-grams by how many reference captions
have them. So captions are collected, and measured together when the first result is waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal
from weakref import WeakSet

from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.judges.verdict import WordsJudgement
from lmms_eval_captions.lmms_eval_tasks.classic_metrics import (
    bleu_counts,
    cider_of_words,
    has_java,
    meteor_statistics,
    plain_words,
    ptb_words,
    rouge_of_words,
)
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.vdc.data import read_references

_MANY: Final = 200
"""Number of captions from which on a message announces that measuring them takes a while."""
Tokenizer = Literal["ptb", "plain"]
NO_METEOR: Final = "METEOR could not be run"
NO_JAVA: Final = (
    "there is no Java, so METEOR is not computed (N/A), and texts are split into words without the "
    "PTB tokenizer (tokenizer:plain in the signature), which may move the other metrics a little; "
    "install one, for example with `apt install default-jre-headless`"
)


@dataclass(frozen=True, slots=True)
class WordsQuestion:
    """The one question about a caption: how many of the reference's words it has."""

    video_id: str
    aspect: str
    reference: str


@dataclass(eq=False)
class _Ticket:
    """A caption to be measured, and the result or error after that."""

    question: WordsQuestion
    caption: str
    result: WordsJudgement | DataError | None = None


_waiting: WeakSet[_Ticket] = WeakSet()
"""Captions whose results somebody still holds: those that an earlier run left are not measured."""
_lock: Final = threading.Lock()


def submit(question: WordsQuestion, caption: str) -> Callable[[], WordsJudgement]:
    """Take a caption in; return a function that waits for its measurement."""
    ticket = _Ticket(question, caption)
    with _lock:
        _waiting.add(ticket)
    return partial(_wait, ticket)


def _wait(ticket: _Ticket) -> WordsJudgement:
    with _lock:
        if ticket.result is None:
            waiting = list(_waiting)
            _waiting.clear()
            for aspect in dict.fromkeys(other.question.aspect for other in waiting):
                _measure([other for other in waiting if other.question.aspect == aspect])
    if ticket.result is None or isinstance(ticket.result, DataError):
        raise ticket.result or DataError("it was not measured, see the first error in the log")
    return ticket.result


def _measure(tickets: Sequence[_Ticket]) -> None:
    """Set the results of captions of one aspect."""
    while tickets:
        # A video that was captioned twice is measured in a round of its own.
        by_video = {ticket.question.video_id: ticket for ticket in reversed(tickets)}
        try:
            for video_id, judgement in _measurements(by_video).items():
                by_video[video_id].result = judgement
        except DataError as error:
            for ticket in by_video.values():
                ticket.result = error
        tickets = [ticket for ticket in tickets if ticket.result is None]


def _measurements(tickets: Mapping[str, _Ticket]) -> dict[str, WordsJudgement]:
    """Measure one caption of each of some videos of an aspect.

    Raises:
        DataError: If the reference captions cannot be read, or a program fails.
    """
    aspect = next(iter(tickets.values())).question.aspect
    if len(tickets) >= _MANY:
        logger.info("counting the words of {:,} {} captions: minutes", len(tickets), aspect)
    texts = read_references(data_settings(), aspect)
    texts |= {video_id: ticket.question.reference for video_id, ticket in tickets.items()}
    words, tokenizer = _words([*texts.values(), *(ticket.caption for ticket in tickets.values())])
    references = dict(zip(texts, words[: len(texts)], strict=True))
    candidates = dict(zip(tickets, words[len(texts) :], strict=True))
    ciders = cider_of_words(candidates, {name: [text] for name, text in references.items()})
    meteors = _meteors(candidates, references)
    return {
        video_id: WordsJudgement(
            run=0,
            reference=ticket.question.reference,
            tokenizer=tokenizer,
            cider=ciders[video_id],
            rouge_l=rouge_of_words(candidates[video_id], [references[video_id]]),
            bleu=bleu_counts(candidates[video_id], [references[video_id]]),
            meteor=meteors.get(video_id),
        )
        for video_id, ticket in tickets.items()
    }


def _words(texts: Sequence[str]) -> tuple[list[str], Tokenizer]:
    if has_java():
        return ptb_words(texts), "ptb"
    THIS_RUN.warn(f"vdc_classic: {NO_JAVA}")
    return plain_words(texts), "plain"


def _meteors(
    candidates: Mapping[str, str], references: Mapping[str, str]
) -> dict[str, tuple[float, ...]]:
    """Return METEOR's statistics by video, none if it cannot run."""
    if not has_java():
        return {}
    try:
        statistics = meteor_statistics(
            list(candidates.values()), [[references[name]] for name in candidates]
        )
    except DataError as error:
        logger.warning("{}: {}", NO_METEOR, error)
        THIS_RUN.warn(f"vdc_classic: {NO_METEOR}: {error}")
        return {}
    return dict(zip(candidates, statistics, strict=True))
