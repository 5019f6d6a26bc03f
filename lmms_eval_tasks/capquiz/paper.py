"""CapQuiz's table of results."""

from __future__ import annotations

from typing import Final

from lmms_eval_captions.lmms_eval_tasks.capquiz.data import GROUPS
from lmms_eval_captions.lmms_eval_tasks.paper_table import Column, PaperTable

_METRICS: Final = (("capf1", "F1"), ("capp", "P"), ("capr", "R"))

PAPER_TABLE: Final = PaperTable(
    source="CapQuiz, Table 3",
    published_judge="gpt-4.1-2025-04-14",
    names=("capquiz", "capquiz_detailed"),
    columns=[
        Column(heading="Overall", metrics=_METRICS),
        *(Column(heading=name, group=("groups", name), metrics=_METRICS) for name in GROUPS),
    ],
)
