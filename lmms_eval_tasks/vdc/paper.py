"""AuroraCap's table of VDCscore."""

from __future__ import annotations

from typing import Final

from lmms_eval_captions.lmms_eval_tasks.paper_table import Column, PaperTable
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS

PAPER_TABLE: Final = PaperTable(
    source="AuroraCap, Table 7",
    published_judge="Llama-3.1-8B-Instruct",
    names=("vdc_score", *(f"vdc_{aspect}" for aspect in ASPECTS)),
    columns=[
        Column(
            heading=aspect.replace("_", " ").title(),
            name=f"vdc_{aspect}",
            metrics=(("vdc_acc", "Acc"), ("vdc_score", "Score")),
            is_joined=True,
        )
        for aspect in ASPECTS
    ],
    note="By its authors' public word Llama-3.1-8B-Instruct judged the paper's Table 7, and not "
    "GPT-4o: only rows of that judge belong beside it, see the page of VDC",
)
