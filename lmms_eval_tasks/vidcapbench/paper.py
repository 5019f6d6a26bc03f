"""VidCapBench's table of results."""

from __future__ import annotations

from typing import Final

from lmms_eval_captions.lmms_eval_tasks.paper_table import Column, PaperTable
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.data import CATEGORIES

_METRICS: Final = (("acc", "Acc"), ("pre", "Pre"), ("cov", "Cov"), ("con", "Con"))

PAPER_TABLE: Final = PaperTable(
    source="VidCapBench, Table 3",
    published_judge="gpt-4o-2024-08-06",
    names=("vidcapbench_ae", "vidcapbench", "vidcapbench_he"),
    columns=[
        Column(heading="Overall", metrics=_METRICS, is_joined=True, has_deviation=True),
        *(
            Column(
                heading=dimension.title(),
                group=("dimensions", dimension),
                metrics=_METRICS,
                is_joined=True,
            )
            for dimension in CATEGORIES
        ),
        Column(
            heading="VDC Overall",
            name="vdc_score",
            metrics=(("vdc_acc", "Acc"), ("vdc_score", "Score")),
            is_joined=True,
            has_deviation=True,
            is_optional=True,
        ),
    ],
    decimals=1,
)
