"""What each process of a run has asked of the judge: other ranks hand it on with their items.

lmms-eval's ranks send one another the items of their captions, pickled, and nothing else that is
ours. An item of ``breakdown``, which every caption has, takes its process's totals along: those of
the last one are complete, as by then all captions of that process were waited for. They are no part
of the item, and stand in no file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lmms_eval_captions.judges.endpoint.progress import Totals
from lmms_eval_captions.lmms_eval_tasks.records import Item, PendingRecord
from lmms_eval_captions.lmms_eval_tasks.session import SESSION

_HANDED_ON: Final[dict[str, Totals]] = {}
"""Other process to its totals since it began, the latest."""


class AccountedRecord(PendingRecord):
    """An item with which, where it is sent to another process, this one's totals go along."""

    def __reduce__(self) -> tuple[Callable[..., Item], tuple[object, ...]]:
        item = dict(self.wait())
        return _receive, (item, SESSION.process, SESSION.totals())


def totals_by_process() -> dict[str, Totals]:
    """Each process's totals since it began: this one's, and those that were handed on."""
    return {SESSION.process: SESSION.totals(), **_HANDED_ON}


def _receive(item: Item, process: str, totals: Totals) -> Item:
    """An item as another process gets it."""
    if process != SESSION.process:
        _HANDED_ON[process] = totals
    return item
