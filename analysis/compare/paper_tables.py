"""Layouts of the papers' tables of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, get_args

from lmms_eval_captions.judges.protocols.gveval import ACCR, Setting
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.capquiz.benchmark import CapQuiz
from lmms_eval_captions.lmms_eval_tasks.capquiz.data import GROUPS
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.benchmark import MsvdEval
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.benchmark import VCapsBench
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.data import GROUP_OF
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import Vdc
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import VidCapBench
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.data import CATEGORIES
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS

_VDC: Final = (("vdc_acc", "Acc"), ("vdc_score", "Score"))
_VIDCAPBENCH: Final = (("acc", "Acc"), ("pre", "Pre"), ("cov", "Cov"), ("con", "Con"))
_CAPQUIZ: Final = (("capf1", "F1"), ("capp", "P"), ("capr", "R"))
_GVEVAL: Final = (*zip(ACCR, ("Acc", "Comp", "Conc", "Rel"), strict=True), ("avg", "Avg"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Numbers of one group of questions, in one column each or in one cell together."""

    heading: str
    """Heading of the column or columns."""
    above: str = ""
    """Heading over several columns without metrics of their own."""
    group: tuple[str, str] | None = None
    """Section of the breakdown and the group in it; ``None`` for all questions."""
    name: str = ""
    """Task or group of the numbers; empty for that of the table."""
    metrics: Sequence[tuple[str, str]] = ()
    """Metrics with their headings; empty for the metric of the block."""
    is_joined: bool = False
    """True if they are in one cell, separated by slashes."""
    has_deviation: bool = False
    """True if the first is followed by its deviation over judge runs, if there are several."""
    is_optional: bool = False
    """True if the column is left out when no captioner has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """A table with a row for each captioner."""

    source: str
    """Paper and number of the table."""
    names: Sequence[str]
    """Tasks and groups that it may show: the first that the captioners have."""
    columns: Sequence[Column]
    blocks: Sequence[tuple[str, str]] = ()
    """Metrics that have rows of their own, with the text in front; empty if every captioner has
    one row."""
    note: str = ""
    """Advice to readers who compare with other rows of the paper."""
    pieces: Sequence[int] = ()
    """Columns of each piece if the paper breaks the table; empty if it is in one piece."""
    decimals: int = 2
    published_judge: str = ""
    """Judge behind the paper's own rows, which the benchmark's README has."""

    def columns_of_page(self) -> list[Column]:
        """Return the columns of the paper's rows in the benchmark's README."""
        return [column for column in self.columns if not column.is_optional]


PAPER_TABLES: Final[Mapping[type[Benchmark[Any, Any]], PaperTable]] = MappingProxyType(
    {
        Vdc: PaperTable(
            source="AuroraCap, Table 7",
            published_judge="Llama-3.1-8B-Instruct",
            names=("vdc_score", *(f"vdc_{aspect}" for aspect in ASPECTS)),
            columns=[
                Column(
                    heading=aspect.replace("_", " ").title(),
                    name=f"vdc_{aspect}",
                    metrics=_VDC,
                    is_joined=True,
                )
                for aspect in ASPECTS
            ],
            note="By its authors' public word Llama-3.1-8B-Instruct judged the paper's Table 7, "
            "and not GPT-4o: only rows of that judge belong beside it, see the page of VDC",
        ),
        VidCapBench: PaperTable(
            source="VidCapBench, Table 3",
            published_judge="gpt-4o-2024-08-06",
            names=("vidcapbench_ae", "vidcapbench", "vidcapbench_he"),
            columns=[
                Column(heading="Overall", metrics=_VIDCAPBENCH, is_joined=True, has_deviation=True),
                *(
                    Column(
                        heading=dimension.title(),
                        group=("dimensions", dimension),
                        metrics=_VIDCAPBENCH,
                        is_joined=True,
                    )
                    for dimension in CATEGORIES
                ),
                Column(
                    heading="VDC Overall",
                    name="vdc_score",
                    metrics=_VDC,
                    is_joined=True,
                    has_deviation=True,
                    is_optional=True,
                ),
            ],
            decimals=1,
        ),
        VCapsBench: PaperTable(
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
        ),
        CapQuiz: PaperTable(
            source="CapQuiz, Table 3",
            published_judge="gpt-4.1-2025-04-14",
            names=("capquiz", "capquiz_detailed"),
            columns=[
                Column(heading="Overall", metrics=_CAPQUIZ),
                *(
                    Column(heading=name, group=("groups", name), metrics=_CAPQUIZ)
                    for name in GROUPS
                ),
            ],
        ),
        # The paper prints only the agreement of these scores with people.
        MsvdEval: PaperTable(
            source="MSVD-Eval, scores of G-VEval (a layout of ours)",
            names=("msvd_eval", *(f"msvd_eval_{setting}" for setting in get_args(Setting))),
            columns=[
                Column(
                    heading=setting.replace("_", "-"),
                    name=f"msvd_eval_{setting}",
                    metrics=_GVEVAL,
                    is_optional=True,
                )
                for setting in get_args(Setting)
            ],
        ),
    }
)
"""Table of each benchmark that has one, for ``compare --paper``."""
