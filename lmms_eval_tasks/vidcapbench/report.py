"""VidCapBench's four numbers of a task, and the breakdown of them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isnan
from statistics import fmean
from typing import TYPE_CHECKING, Any

from loguru import logger

from lmms_eval_captions.lmms_eval_tasks.breakdown import (
    break_down,
    listed,
    table_of,
    verdicts_by_run,
)
from lmms_eval_captions.lmms_eval_tasks.judge_run import Record
from lmms_eval_captions.lmms_eval_tasks.scoring import signature_of, write_breakdown
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.data import CATEGORIES
from lmms_eval_captions.metrics.vidcapbench_acc import vidcapbench_acc
from lmms_eval_captions.metrics.vidcapbench_con import vidcapbench_con
from lmms_eval_captions.metrics.vidcapbench_cov import vidcapbench_cov
from lmms_eval_captions.metrics.vidcapbench_pre import vidcapbench_pre

if TYPE_CHECKING:
    import argparse

Metrics = dict[str, Callable[[Sequence[Any]], float]]


def metrics_of(n_tokens: Sequence[float]) -> Metrics:
    """The four metrics as functions of the verdicts of one judge run.

    Args:
        n_tokens: T5 tokens of every caption; none where they cannot be counted.
    """
    return {
        "acc": vidcapbench_acc,
        "pre": vidcapbench_pre,
        "cov": vidcapbench_cov,
        # Parity: of a dimension, too, con takes the tokens of whole captions, those of all videos.
        "con": partial(vidcapbench_con, n_tokens=n_tokens),
    }


def report(
    records: Sequence[Record],
    *,
    n_tokens: Sequence[float],
    note: str,
    args: argparse.Namespace | None,
) -> None:
    """Show and write all numbers: overall, dimensions, sub categories, and every judge run.

    Args:
        records: Resolved items of ``acc``.
        n_tokens: As of :func:`metrics_of`.
        note: What a reader must know about the subset.
        args: lmms-eval's command line.
    """
    task, signature = str(records[0]["task"]), signature_of(records)
    metrics = metrics_of(n_tokens)
    names = tuple(name for names in CATEGORIES.values() for name in names)
    order = {"overall": ("all",), "dimensions": tuple(CATEGORIES), "sub_categories": names}
    breakdown = break_down(records, groups=_groups, metrics=metrics, order=order)
    runs = [
        {name: _known(metric(run)) for name, metric in metrics.items()}
        for run in verdicts_by_run(records)
    ]
    logger.info("{}\n{}\n{}", signature, table_of(breakdown, metrics), note)
    head = {"task": task, "signature": signature, "note": note, "runs": runs}
    mean_tokens = fmean(n_tokens) if n_tokens else None
    write_breakdown({**head, "mean_tokens": mean_tokens, **breakdown}, task=task, args=args)


def tokens_of(records: Sequence[Record]) -> list[int]:
    """T5 tokens of every caption at hand; none where they cannot be counted."""
    # Parity: the released script counts all captions of its file, asked about or not.
    if any("con_reason" in item for item in records):
        return []
    counts = [item.get("n_tokens") for item in records]
    return [number for number in counts if isinstance(number, int)]


def _groups(item: Record) -> list[list[tuple[str, str]]]:
    """Where each question of a caption counts."""
    return [
        [("overall", "all"), ("dimensions", dimension), ("sub_categories", sub)]
        for dimension, sub in zip(
            listed(item, "dimensions"), listed(item, "sub_categories"), strict=True
        )
    ]


def _known(value: float) -> float | None:
    return None if isnan(value) else value
