"""VidCapBench's two subsets: pairs that judges grade stably, and those that people grade.

Source: VidCapBench, section 3.4: pairs of video motion and physical laws that are not judged
consistently are the subset HE, the remaining ones AE. Ours: a pair of another dimension that is not
judged consistently after the review is dropped, as AE holds what judges grade stably.
"""

from __future__ import annotations

from typing import Final, Literal

from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.form import same_words
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Work

Subset = Literal["AE", "HE"]

_FOR_PEOPLE: Final = ("video motion", "physical laws")
_UNSTABLE: Final = "split: judged inconsistently, and of no dimension that people grade"


def split_pairs(_work: Work, rows: list[Row]) -> list[Row]:
    """Pairs with their ``subset``, by whether their last judgements were consistent."""
    return [_placed(row) for row in rows]


def _placed(row: Row) -> Row:
    subset: Subset = "AE"
    if row.get("flag") == "inconsistent":
        if same_words(row["primary_category"].replace("_", " ")) not in _FOR_PEOPLE:
            return {**row, "dropped": _UNSTABLE}
        subset = "HE"
    return {**row, "subset": subset}
