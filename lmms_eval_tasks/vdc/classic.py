"""VDC with the classic metrics: captions compared with reference captions, without a judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import fsum, nan
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.judges.verdict import WordsJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc, Metric, Task, Videos, over_videos
from lmms_eval_captions.lmms_eval_tasks.classic_metrics import has_java
from lmms_eval_captions.lmms_eval_tasks.ratios import SumsOf, of_means, of_sums
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.signature import UNAVAILABLE
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import WithReferences, tasks_of_aspects
from lmms_eval_captions.lmms_eval_tasks.vdc.words import (
    NO_JAVA,
    NO_METEOR,
    WordsQuestion,
    submit,
)
from lmms_eval_captions.metrics.captioning import bleu, meteor
from lmms_eval_captions.metrics.vdc import mean_over_videos


def _of_sums(value_of: SumsOf, *, values: Callable[[WordsJudgement], Sequence[object]]) -> Metric:
    """Return a metric in percent of sums over captions."""

    def score(videos: Videos) -> float:
        rows = [row for video in videos for row in video if row is not None]
        sums = [fsum(column) for column in zip(*rows, strict=True)]
        return 100.0 * value_of(sums) if rows else nan

    return Metric(score=over_videos(score), ratios=of_sums(value_of), values=values, field="counts")


def _of_means(values: Callable[[WordsJudgement], Sequence[object]]) -> Metric:
    """Return a metric in percent that is a mean over captions."""
    return Metric(
        score=over_videos(lambda videos: 100.0 * mean_over_videos(videos)),
        ratios=of_means(),
        values=values,
        field="scores",
    )


def _bleu_counts(judgement: WordsJudgement) -> tuple[Sequence[int]]:
    return (judgement.bleu,)


def _no_meteor(records: Sequence[CaptionRecord]) -> str | None:
    is_missing = any(record.extras.get("meteor") == UNAVAILABLE for record in records)
    return f"{NO_METEOR}; see the log" if is_missing else None


class VdcClassic(WithReferences[WordsQuestion, WordsJudgement]):
    """ROUGE-L and CIDEr as means over captions, BLEU and METEOR of all captions together.

    Each is times 100, as Table 6 prints it.
    """

    tasks = tasks_of_aspects("vdc_classic")
    metrics = {
        "rouge_l": _of_means(lambda judgement: (judgement.rouge_l,)),
        "cider": replace(_of_means(lambda judgement: (judgement.cider,)), highest=1000.0),
        "bleu_1": _of_sums(partial(bleu, n=1), values=_bleu_counts),
        "bleu_4": _of_sums(partial(bleu, n=4), values=_bleu_counts),
        "meteor": replace(
            _of_sums(meteor, values=lambda judgement: (judgement.meteor,)), unavailable=_no_meteor
        ),
    }
    headline = "rouge_l"
    headline_means = "ROUGE-L in % of captions and reference captions, without a judge"
    measure = staticmethod(submit)

    def read(self, settings: DataSettings, task: Task) -> list[dict[str, object]]:
        """Return the documents; warn if there is no Java."""
        if not has_java():
            logger.warning("{}: {}", task.name, NO_JAVA)
        return super().read(settings, task)

    def questions(self, doc: Doc) -> list[WordsQuestion]:
        """Return the one question."""
        return [WordsQuestion(doc["video_id"], doc["aspect"], doc["reference"])]

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
