"""VCapsBench's table of results."""

from __future__ import annotations

from typing import Final

from lmms_eval_captions.lmms_eval_tasks.paper_table import Column, PaperTable
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.data import GROUP_OF

PAPER_TABLE: Final = PaperTable(
    source="VCapsBench, Table 1",
    names=("vcapsbench",),
    columns=[
        *(
            Column(heading=name.title(), above=group, group=("categories", name))
            for name, group in GROUP_OF.items()
        ),
        Column(heading="ALL"),
    ],
    pieces=(11, 11),
    blocks=(("ar", "AR"), ("ir", "IR"), ("cr", "CR")),
)
