"""The words of captions and of VDC's reference captions: what the classic metrics are made of.

Their Java programs take seconds to start, and CIDEr weighs n-grams by how many reference captions
have them. So captions are collected, and measured together when the first of them is waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
from lmms_eval_captions.lmms_eval_tasks.vdc.references import read_references

_MANY: Final = 200
"""Captions from which on it is said that they are measured, as that takes a while."""
Tokenizer = Literal["ptb", "plain"]
NO_METEOR: Final = "METEOR could not be run"
NO_JAVA: Final = (
    "there is no Java, so METEOR is not computed (N/A), and texts are split into words without the "
    "PTB tokenizer (tokenizer:plain in the signature), which may move the other metrics a little; "
    "install one, for example with `apt install default-jre-headless`"
)
"""What is missing without Java, and what helps."""


@dataclass(frozen=True, slots=True)
class WordsQuestion:
    """The one question about a caption: how many of the reference's words it has."""

    video_id: str
    aspect: str
    reference: str


@dataclass(eq=False)
class _Ticket:
    """A caption that was handed in."""

    question: WordsQuestion
    caption: str
    result: WordsJudgement | DataError | None = None
    """What was measured, or why nothing was; ``None`` before."""


@dataclass(slots=True)
class _Counter:
    """Measures this process's captions, all that wait at a time together."""

    _waiting: WeakSet[_Ticket] = field(default_factory=WeakSet)
    """Those whose record is still there: what an earlier run left behind is not measured."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def submit(self, question: WordsQuestion, caption: str) -> Callable[[], WordsJudgement]:
        """Hand a caption in; a function that waits for what is measured."""
        ticket = _Ticket(question, caption)
        with self._lock:
            self._waiting.add(ticket)
        return partial(self._wait, ticket)

    def _wait(self, ticket: _Ticket) -> WordsJudgement:
        with self._lock:
            if ticket.result is None:
                waiting, self._waiting = list(self._waiting), WeakSet()
                for aspect in dict.fromkeys(each.question.aspect for each in waiting):
                    _measure([each for each in waiting if each.question.aspect == aspect])
        if ticket.result is None or isinstance(ticket.result, DataError):
            raise ticket.result or DataError("it was not measured, see the first error in the log")
        return ticket.result


submit = _Counter().submit
"""How the classic metrics measure a caption."""


def _measure(tickets: Sequence[_Ticket]) -> None:
    """Measure captions of one aspect; each has a result then."""
    while tickets:
        # A video that was captioned twice is measured in a round of its own.
        of_videos = {ticket.question.video_id: ticket for ticket in reversed(tickets)}
        try:
            for video_id, judgement in _measurements(of_videos).items():
                of_videos[video_id].result = judgement
        except DataError as error:
            for ticket in of_videos.values():
                ticket.result = error
        tickets = [ticket for ticket in tickets if ticket.result is None]


def _measurements(tickets: Mapping[str, _Ticket]) -> dict[str, WordsJudgement]:
    """What is measured of one caption of each of some videos of an aspect.

    Raises:
        DataError: If the reference captions cannot be read, or a program fails.
    """
    aspect = next(iter(tickets.values())).question.aspect
    if len(tickets) >= _MANY:
        logger.info("counting the words of {:,} {} captions: minutes", len(tickets), aspect)
    texts = {
        **read_references(data_settings(), aspect),
        **{video_id: ticket.question.reference for video_id, ticket in tickets.items()},
    }
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
    """METEOR's statistics by video, none where it cannot run."""
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
