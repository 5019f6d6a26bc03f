"""Questions about clips, as models write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lmms_eval_captions.judges.endpoint.request import Asked
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.categories import (
    Categories,
    load_categories,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.lists import Written, fault_of
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Work
from lmms_eval_captions.lmms_eval_tasks.named_models import Model

NOTHING = "no readable reply"


def written_rows(
    work: Work,
    asked: Sequence[tuple[Row, Model, Asked[Written]]],
    *,
    keys: Sequence[str],
    most: int,
    source: str = "frames",
    carried: Sequence[str] = (),
) -> Iterator[Row]:
    """A row for each question that was written, and one for each reply that gave none.

    Args:
        work: Counts what is wrong with replies.
        asked: What was asked about (a clip's row), the model, and what came of it.
        keys: What each question must have.
        most: Questions of a reply at most.
        source: What the questions were made of.
        carried: What else of a row its questions are about and told apart by, such as the aspect.
    """
    for row, model, each in asked:
        further = {key: row[key] for key in carried}
        about = {"video": row["video"], **further, "writer": model.name, "source": source}
        if each.value is None:
            fault: str = each.failure or "unreadable"
            if fault == "unreadable":
                fault = fault_of(each.reply, keys, most=most)
                work.tally.faults[f"reply: {fault}"] += 1
            yield {**about, "dropped": f"{NOTHING}: {fault}", "reply": each.reply[:2000]}
            continue
        _count_faults(work, each.value)
        for place, item in enumerate(each.value.items):
            name = "/".join([row["video"], source, *further.values(), model.name, str(place)])
            yield {**about, "id": name, **{key: item[key] for key in keys}}


def _count_faults(work: Work, written: Written) -> None:
    faults = work.tally.faults
    faults["question: wrong keys"] += written.n_wrong_keys
    faults["question: repeated in its reply"] += written.n_repeated
    faults["reply: cut, what came is taken"] += written.is_cut


def checked_rows(rows: Sequence[Row], fault: Callable[[Row], str | None]) -> list[Row]:
    """Rows, those with a fault dropped for it."""
    return [row if (reason := fault(row)) is None else {**row, "dropped": reason} for row in rows]


def category_list(categories: Mapping[str, str]) -> str:
    """Categories and their definitions, a line each, as models are shown them."""
    return "\n".join(f"- {name}: {definition}" for name, definition in categories.items())


def flat_categories(work: Work, name: str) -> Categories:
    """The categories that a prompt file names, or one's own in their place.

    Args:
        work: Has the options and the prompts.
        name: Of the file, such as ``build_vcapsbench_categories``.
    """
    if work.options.categories is None:
        return load_categories(work.prompts, name)
    return Categories(category_list(work.categories), {"": tuple(work.categories)})


def n_written(work: Work, n_categories: int) -> int:
    """Questions that a writer is asked for in each category: five for each one that may stay.

    Source: CapQuiz, section 3.2.2 ("Over-generate then Filter") and figure 6, which asks for ten of
    each of ten types, of which 20 of a clip stay.
    """
    return max(1, -(-5 * work.options.per_video // max(1, n_categories)))


def typical_item(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - texts and lists of texts
    """A question of typical length, for estimates."""
    return {"question": "What is the person in the middle of the picture holding?", **fields}
