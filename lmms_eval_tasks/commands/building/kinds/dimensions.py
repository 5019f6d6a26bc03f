"""The dimensions and sub categories of VidCapBench's pairs, the paper's or one's own."""

from __future__ import annotations

from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.form import category_of
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.categories import (
    Categories,
    load_categories,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Work

PROMPT: Final = "build_vidcapbench_categories"
_SIGN: Final = "/"


def dimensions_for(work: Work) -> Categories:
    """Sub categories by dimension; one's own are written "dimension/sub category".

    One without a dimension is a dimension with itself alone.
    """
    if work.options.categories is None:
        return load_categories(work.prompts, PROMPT)
    lines: dict[str, list[str]] = {}
    groups: dict[str, tuple[str, ...]] = {}
    for name, definition in work.categories.items():
        before, sign, behind = (part.strip() for part in name.partition(_SIGN))
        sub_category = behind if sign and behind else before
        groups[before] = (*groups.get(before, ()), sub_category)
        lines.setdefault(before, [f"{before}:"]).append(f"- {sub_category}: {definition}")
    text = "\n".join(line for of_dimension in lines.values() for line in of_dimension)
    return Categories(text, groups)


def place_of(primary: Any, sub: Any, categories: Categories) -> tuple[str, str] | None:  # noqa: ANN401 - what a model wrote
    """The dimension and the sub category that a model means; ``None`` where it means none.

    Where the sub category is of one dimension alone, the name of the dimension does not matter.

    >>> categories = Categories("", {"motion": ("body", "object"), "content": ("object",)})
    >>> place_of("content", "Body", categories), place_of("Motion", "object", categories)
    (('motion', 'body'), ('motion', 'object'))
    >>> place_of("sound", "object", categories) is None
    True
    """
    places = [
        (dimension, name)
        for dimension, names in categories.groups.items()
        for name in names
        if category_of(sub, [name]) == name
    ]
    of_dimension = [place for place in places if category_of(primary, [place[0]]) == place[0]]
    if of_dimension:
        return of_dimension[0]
    return places[0] if len(places) == 1 else None
