"""A table of G-VEval's scores: the paper prints their agreement with people alone."""

from __future__ import annotations

from typing import Final, get_args

from lmms_eval_captions.judges.protocols.gveval import ACCR, Setting
from lmms_eval_captions.lmms_eval_tasks.paper_table import Column, PaperTable

PAPER_TABLE: Final = PaperTable(
    source="MSVD-Eval, scores of G-VEval (a layout of ours)",
    names=("msvd_eval", *(f"msvd_eval_{setting}" for setting in get_args(Setting))),
    columns=[
        Column(
            heading=setting.replace("_", "-"),
            name=f"msvd_eval_{setting}",
            metrics=(*zip(ACCR, ("Acc", "Comp", "Conc", "Rel"), strict=True), ("avg", "Avg")),
            is_optional=True,
        )
        for setting in get_args(Setting)
    ],
)
