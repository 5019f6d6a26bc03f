"""Captions and judgements in the sample log of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lmms_eval_captions.analysis.results_folder import RunResults
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

Judgement = Mapping[str, Any]


class LoggedCaption(NamedTuple):
    """A caption that was judged."""

    text: str
    digest: str
    """Empty if the log has none."""
    judgements: Sequence[Judgement]
    """Judgements of all judge runs; those of a run in the order of the questions."""


def logged_captions(run: RunResults, task: str) -> dict[str, list[LoggedCaption]]:
    """Return the judged captions of each video, which may have several, in the log's order.

    Raises:
        DataError: If the run has no sample log of the task, or it cannot be read to its end.
    """
    headline = benchmark_of_task(task).headline
    captions: dict[str, list[LoggedCaption]] = {}
    for sample in run.samples(task):
        item: Any = sample.get(headline)
        if not isinstance(item, dict):
            continue
        text: Any = sample.get("filtered_resps") or sample.get("resps") or ""
        while isinstance(text, list):
            text = text[0] if text else ""
        judgements = [said for said in item.get("judgements") or () if isinstance(said, dict)]
        logged = LoggedCaption(str(text), str(item.get("caption_digest") or ""), judgements)
        captions.setdefault(str(item.get("video_id")), []).append(logged)
    return captions
