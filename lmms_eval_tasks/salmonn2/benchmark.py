"""video-SALMONN 2's test set: its file, task and metrics."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.protocols import missed_events as protocol
from lmms_eval_captions.judges.protocols.missed_events import BaseEvents, ErrorJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Metric,
    Task,
    over_questions,
)
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, read_clips
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.lmms_eval_tasks.ratios import of_pairs
from lmms_eval_captions.metrics.event_errors import error_rate

SOURCE: Final = Source(
    benchmark="salmonn2",
    page="https://huggingface.co/datasets/tsinghua-ee/video-SALMONN_2_testset",
    license="Apache-2.0",
    video_folder="salmonn2/video",
)
FILE: Final = "video_salmonn2_test.json"
_MOST: Final = 1000.0
"""Highest rate that an interval may reach; captions may invent more than there is."""


def _metric(*parts: str) -> Metric:
    def values(judgement: ErrorJudgement) -> Sequence[object]:
        counts = [getattr(judgement, part) for part in parts]
        return (None if None in counts else (sum(counts), judgement.n_events),)

    return Metric(
        score=over_questions(lambda rows: error_rate(row for row in rows if row is not None)),
        ratios=of_pairs,
        values=values,
        higher_is_better=False,
        highest=_MOST,
        field=f"{'_'.join(parts)}_events",
    )


class Salmonn2(Benchmark[BaseEvents, ErrorJudgement]):
    """Events that captions miss, mistake or invent."""

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
    judge = staticmethod(protocol.judge_errors)
    silent = staticmethod(lambda question, run: (protocol.silent_errors(question, run),))
    output_tokens = {"salmonn2_errors": 350}

    read = staticmethod(
        lambda settings, _task: read_clips(
            find_file(settings, SOURCE, FILE), _clip, expected="a video and a list of its events"
        )
    )
    questions = staticmethod(lambda doc: [BaseEvents(tuple(doc["events"]))])


def _clip(row: Any) -> dict[str, object]:  # noqa: ANN401 - a row of the file
    return {"video": Path(row["video"]).name, "events": events_of(row["events"])}


def events_of(value: object) -> list[str]:
    """Return the events of a row: a list, or the text of one as in a circulating copy.

    >>> events_of("['a man runs', 'he falls']")
    ['a man runs', 'he falls']
    """
    events = ast.literal_eval(value) if isinstance(value, str) else value
    if not isinstance(events, list) or not events or not all(isinstance(e, str) for e in events):
        raise ValueError(f"expected a list of events, got {value!r:.80}")
    return events


SALMONN2: Final = Salmonn2()
