"""video-SALMONN 2's test set: its task and metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Ask
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.missed_events import (
    BaseEvents,
    ErrorJudgement,
    judge_errors,
    silent_errors,
)
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Metric,
    Task,
    Videos,
    over_questions,
)
from lmms_eval_captions.lmms_eval_tasks.ratios import NEITHER, Parts
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.salmonn2.data import FILE, SOURCE, read_clips
from lmms_eval_captions.metrics.event_errors import error_rate

_MOST: Final = 1000.0
"""Highest rate that an interval may reach; captions may invent more than there is."""


def _values(*parts: str) -> Callable[[ErrorJudgement], Sequence[object]]:
    def read(judgement: ErrorJudgement) -> Sequence[object]:
        counts = [getattr(judgement, part) for part in parts]
        return (None if None in counts else (sum(counts), judgement.n_events),)

    return read


def _rate(rows: Sequence[Sequence[int] | None]) -> float:
    return error_rate(row for row in rows if row is not None)


def _ratios(videos: Videos, _records: Sequence[CaptionRecord]) -> list[Parts]:
    scored = ([row for row in video if row is not None] for video in videos)
    return [
        [(fsum(row[0] for row in rows), fsum(row[1] for row in rows)) if rows else NEITHER]
        for rows in scored
    ]


def _metric(*parts: str) -> Metric:
    return Metric(
        score=over_questions(_rate),
        ratios=_ratios,
        values=_values(*parts),
        higher_is_better=False,
        highest=_MOST,
        field=f"{'_'.join(parts)}_events",
    )


class Salmonn2(Benchmark[BaseEvents, ErrorJudgement]):
    """Events that captions miss, mistake or invent."""

    name = "salmonn2"
    folder = Path(__file__).parent
    source = SOURCE
    probe_file = FILE
    name_fields = ("video",)
    tasks = {
        "salmonn2": Task(
            name="salmonn2",
            caption_prompt="salmonn2_caption.caption",
            judge_prompts=("salmonn2_errors",),
            extras={"prompts": "ours"},
            caption_chars=2400,
        )
    }
    metrics = {
        "total": _metric("missed", "incorrect", "hallucinated"),
        "miss": _metric("missed"),
        "incorrect": _metric("incorrect"),
        "hall": _metric("hallucinated"),
    }
    headline = "total"
    headline_means = "errors per 100 base events: missed, incorrect and hallucinated"
    silent = staticmethod(lambda question, run: (silent_errors(question, run),))
    output_tokens = {"salmonn2_errors": 350}

    def read(self, settings: DataSettings, _task: Task) -> list[dict[str, object]]:
        """Return the clips of the official file."""
        return read_clips(settings)

    def questions(self, doc: Doc) -> list[BaseEvents]:
        """Return the base events as the one question."""
        return [BaseEvents(tuple(doc["events"]))]

    def question_text(self, _question: BaseEvents) -> str:
        """Return an empty text: there is one question per clip."""
        return ""

    async def judge(
        self, ask: Ask, question: BaseEvents, caption: str, *, config: JudgeConfig, run: int
    ) -> ErrorJudgement:
        """Count the errors of one caption."""
        return await judge_errors(ask, question, caption, config=config, run=run)


SALMONN2: Final = Salmonn2()
