"""What sample logs hold of a caption beside its verdicts: its text, and what the judge said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults

Logged = Mapping[str, Any]
"""A judgement as sample logs hold it."""


@dataclass(frozen=True, slots=True)
class LoggedCaption:
    """A caption of a sample log."""

    video_id: str
    text: str
    judgements: list[dict[str, Any]]
    """Of all judge runs, each with its ``run``; those of a run in the order of the questions."""


def logged_captions(
    run: RunResults, task: str, benchmark: Benchmark[Any, Any]
) -> Iterator[LoggedCaption]:
    """The captions of a task that were judged, in the order of the log.

    Raises:
        DataError: If the run has no sample log of the task, or it cannot be read to its end.
    """
    for sample in run.samples(task):
        item = sample.get(benchmark.headline)
        if isinstance(item, dict):
            judgements = item.get("judgements")
            yield LoggedCaption(
                str(item.get("video_id")),
                caption_of(sample),
                [said for said in judgements if isinstance(said, dict)]
                if isinstance(judgements, list)
                else [],
            )


def caption_of(sample: Mapping[str, Any]) -> str:
    """The caption of a sample of a log."""
    replies = sample.get("filtered_resps") or sample.get("resps") or ""
    while isinstance(replies, list):
        replies = replies[0] if replies else ""
    return str(replies)
