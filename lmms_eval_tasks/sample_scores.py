"""Scores of single captions, in the places where lmms-eval reads them.

It looks at two places. ``Stderr_CLT`` is the standard error of ``score`` in a metric's items. And
``--baseline`` compares ``score`` of the samples with that of another run's sample log: its mean
times 100 is taken for the metric, so that a sample's ``score`` is a hundredth of what the caption
contributes to the headline. A caption that does not count has neither.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.intervals import contributions
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Item
from lmms_eval_captions.lmms_eval_tasks.scoring import has_score
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN

SCORE: Final = "score"
_PERCENT: Final = 100.0
_DIGITS: Final = 12
"""Leaves out the noise of rounding, which is a difference to who compares equal captions."""


def score_items(
    benchmark: Benchmark[Any, Any],
    metric: str,
    items: Sequence[Item],
    records: Sequence[CaptionRecord],
) -> None:
    """Put into each item what its caption contributes to the metric, in the metric's unit.

    Args:
        benchmark: Which one.
        metric: Which of its metrics.
        items: The captions' items of this metric, complete; changed in place.
        records: Those of the same captions, with what the metric reads.
    """
    values = contributions(benchmark, metric, records) if has_score(records) else None
    for item, value in zip(items, values or [None] * len(items), strict=True):
        item.pop(SCORE, None)
        if value is not None:
            item[SCORE] = round(value, _DIGITS)


def read_items(
    benchmark: Benchmark[Any, Any], metric: str, items: Sequence[Item]
) -> list[CaptionRecord]:
    """The records of the items of a metric, with what it reads."""
    field = benchmark.metrics[metric].field
    return [CaptionRecord.read(item, **{metric: field}) for item in items]


def score_samples(
    benchmark: Benchmark[Any, Any], samples: Sequence[MutableMapping[str, Any]]
) -> None:
    """Give every sample of a task that is aggregated its ``score``, or none.

    Items that came from other ranks are copies of those that were aggregated: they are scored here.

    Args:
        benchmark: Which one.
        samples: All that lmms-eval logs of the task; changed in place.
    """
    logged = [sample for sample in samples if isinstance(sample.get(benchmark.headline), Mapping)]
    for metric in benchmark.metrics:
        items: list[Item] = [sample[metric] for sample in logged if metric in sample]
        if not any(SCORE in item for item in items):
            score_items(benchmark, metric, items, read_items(benchmark, metric, items))
    for sample in logged:
        value = sample[benchmark.headline].get(SCORE)
        if value is None:
            # lmms-eval's loader takes 0 for a line without a score that has a target. The video
            # stands in the items, too.
            sample["target"] = ""
        else:
            sample[SCORE] = round(value / _PERCENT, _DIGITS)


def note_documents(
    task: str, benchmark: Benchmark[Any, Any], samples: Sequence[Mapping[str, Any]]
) -> None:
    """Keep how each scored caption of a task was judged, for who compares it with another run's.

    Args:
        task: One of the benchmark's.
        benchmark: Which one.
        samples: All that lmms-eval logs of the task.
    """
    THIS_RUN.documents[task] = {
        sample["doc_id"]: sample[benchmark.headline] for sample in samples if SCORE in sample
    }
