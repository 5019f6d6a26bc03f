"""VDC with the classic metrics: captions compared with reference captions, without a judge.

Java programs take seconds to start, and CIDEr weighs n-grams by how many reference captions have
them. So captions are collected, and measured together when the first result is waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from math import fsum, nan
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import DataSettings, data_settings
from lmms_eval_captions.judges.verdict import WordsJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Metric, Task, Videos, over_videos
from lmms_eval_captions.lmms_eval_tasks.common import classic_metrics as words
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.ratios import SumsOf, of_sums
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.signature import UNAVAILABLE
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import (
    WithReferences,
    mean_in_percent,
    read_references,
    tasks_of_aspects,
)
from lmms_eval_captions.metrics.captioning import bleu, meteor

_MANY: Final = 200
"""Number of captions from which on a message announces that measuring them takes a while."""
_NO_METEOR: Final = "METEOR could not be run"


@dataclass(frozen=True, slots=True)
class WordsQuestion:
    """The one question about a caption: how many of the reference's words it has."""

    video_id: str
    aspect: str
    reference: str


_Row = tuple[WordsQuestion, str, Future[WordsJudgement]]
_waiting: Final[dict[tuple[str, str], _Row]] = {}
"""Captions to be measured, by aspect and video."""
_lock: Final = threading.Lock()


def _submit(question: WordsQuestion, caption: str) -> Callable[[], WordsJudgement]:
    """Take a caption in; return a function that waits for its measurement."""
    future: Future[WordsJudgement] = Future()
    with _lock:
        _waiting[question.aspect, question.video_id] = question, caption, future
    return partial(_wait, future)


def _wait(future: Future[WordsJudgement]) -> WordsJudgement:
    with _lock:
        if not future.done():
            waiting = list(_waiting.values())
            _waiting.clear()
            for aspect in dict.fromkeys(question.aspect for question, *_ in waiting):
                _measure(aspect, [row for row in waiting if row[0].aspect == aspect])
    if not future.done():
        raise DataError("it was not measured, see the first error in the log")
    return future.result()


def _measure(aspect: str, rows: Sequence[_Row]) -> None:
    """Measure the captions of one aspect, a caption of each of some videos."""
    if len(rows) >= _MANY:
        logger.info("counting the words of {:,} {} captions: minutes", len(rows), aspect)
    try:
        texts = read_references(data_settings(), aspect)
        texts |= {question.video_id: question.reference for question, *_ in rows}
        captions = [caption for _, caption, _ in rows]
        texts_and_captions = words.ptb_words([*texts.values(), *captions])
    except DataError as error:
        for *_, future in rows:
            future.set_exception(error)
        return
    references = dict(zip(texts, texts_and_captions[: len(texts)], strict=True))
    ids = [question.video_id for question, *_ in rows]
    candidates = dict(zip(ids, texts_and_captions[len(texts) :], strict=True))
    ciders = words.cider_of_words(candidates, {name: [text] for name, text in references.items()})
    meteors: Mapping[str, tuple[float, ...]] = {}
    try:
        others = [[references[name]] for name in candidates]
        statistics = words.meteor_statistics(list(candidates.values()), others)
        meteors = dict(zip(candidates, statistics, strict=True))
    except DataError as error:
        logger.warning("{}: {}", _NO_METEOR, error)
        THIS_RUN.warn(f"vdc_classic: {_NO_METEOR}: {error}")
    for question, _, future in rows:
        candidate, reference = candidates[question.video_id], [references[question.video_id]]
        future.set_result(
            WordsJudgement(
                run=0,
                reference=question.reference,
                tokenizer="ptb",
                cider=ciders[question.video_id],
                rouge_l=words.rouge_of_words(candidate, reference),
                bleu=words.bleu_counts(candidate, reference),
                meteor=meteors.get(question.video_id),
            )
        )


def _of_sums(value_of: SumsOf, *, values: Callable[[WordsJudgement], Sequence[object]]) -> Metric:
    def score(videos: Videos) -> float:
        rows = [row for video in videos for row in video if row is not None]
        sums = [fsum(column) for column in zip(*rows, strict=True)]
        return 100.0 * value_of(sums) if rows else nan

    return Metric(score=over_videos(score), ratios=of_sums(value_of), values=values, field="counts")


def _bleu_counts(judgement: WordsJudgement) -> tuple[Sequence[int]]:
    return (judgement.bleu,)


def _no_meteor(records: Sequence[CaptionRecord]) -> str | None:
    is_missing = any(record.extras.get("meteor") == UNAVAILABLE for record in records)
    return f"{_NO_METEOR}; see the log" if is_missing else None


class VdcClassic(WithReferences[WordsQuestion, WordsJudgement]):
    """ROUGE-L and CIDEr as means over captions, BLEU and METEOR of all captions together.

    Each is times 100, as Table 6 prints it.
    """

    tasks = tasks_of_aspects("vdc_classic")
    metrics = {
        "rouge_l": mean_in_percent(lambda judgement: (judgement.rouge_l,)),
        "cider": replace(mean_in_percent(lambda judgement: (judgement.cider,)), highest=1000.0),
        "bleu_1": _of_sums(partial(bleu, n=1), values=_bleu_counts),
        "bleu_4": _of_sums(partial(bleu, n=4), values=_bleu_counts),
        "meteor": replace(
            _of_sums(meteor, values=lambda judgement: (judgement.meteor,)), unavailable=_no_meteor
        ),
    }
    headline = "rouge_l"
    headline_means = "ROUGE-L in % of captions and reference captions, without a judge"
    measure = staticmethod(_submit)
    questions = staticmethod(lambda doc: [WordsQuestion(**doc)])

    def read(self, settings: DataSettings, task: Task) -> list[dict[str, object]]:
        """Return the documents; fail now if there is no Java."""
        words.require_java()
        return super().read(settings, task)

    def extras(
        self, judgements: Sequence[WordsJudgement], _fields: Mapping[str, object]
    ) -> dict[str, str]:
        """Return the tokenizer, and a note if METEOR is missing."""
        has_meteor = all(judgement.meteor is not None for judgement in judgements)
        return {
            **({"tokenizer": judgements[0].tokenizer} if judgements else {}),
            **({} if has_meteor else {"meteor": UNAVAILABLE}),
        }


VDC_CLASSIC: Final = VdcClassic()
