"""Aggregation of a task's items."""

from __future__ import annotations

from collections.abc import Iterable

from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.results.scoring import signature_of


def signature_of_items(items: Iterable[PendingRecord]) -> str:
    """Return the signature of a task from its captions' items of any metric."""
    return signature_of([item.record for item in items])
