"""VCapsBench's metrics for all questions, the 4 groups and the 21 categories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.breakdown import MicroAverages, listed
from lmms_eval_captions.lmms_eval_tasks.judge_run import Record
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.data import GROUP_OF, GROUPS
from lmms_eval_captions.metrics.vcapsbench_ar import vcapsbench_ar
from lmms_eval_captions.metrics.vcapsbench_cr import vcapsbench_cr
from lmms_eval_captions.metrics.vcapsbench_ir import vcapsbench_ir


def _groups(item: Record) -> list[list[tuple[str, str]]]:
    """Where each question of a caption counts."""
    return [list(_groups_of(str(category))) for category in listed(item, "categories")]


def _groups_of(category: str) -> Iterator[tuple[str, str]]:
    yield "overall", "all"
    if category in GROUP_OF:
        yield "groups", GROUP_OF[category]
    yield "categories", category


SCORES: Final = MicroAverages(
    metrics={"ar": vcapsbench_ar, "ir": vcapsbench_ir, "cr": vcapsbench_cr},
    groups=_groups,
    order={"overall": ("all",), "groups": tuple(GROUPS), "categories": tuple(GROUP_OF)},
)
"""Micro averages of records with ``categories`` and ``verdicts``."""
