"""Pairs of VCapsBench on two roads: from captions, and straight from frames.

Source: VCapsBench (arXiv 2505.23484), section 3.3 and figure 4.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import chain
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.commands.building.captioning import (
    CaptionWanted,
    ask_captions,
    why_none,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import Shown, with_frames
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.lists import Written, read_items
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Wanted, Work, kept
from lmms_eval_captions.lmms_eval_tasks.commands.building.writing import (
    NOTHING,
    flat_categories,
    typical_item,
    written_rows,
)
from lmms_eval_captions.lmms_eval_tasks.named_models import Model

KEYS: Final = ("category", "question", "answer")
CAPTION: Final = "vcapsbench_caption"
FROM_CAPTION: Final = "build_vcapsbench_pairs_from_caption"
FROM_FRAMES: Final = "build_vcapsbench_pairs_from_frames"
CATEGORIES: Final = "build_vcapsbench_categories"


def write_captions(work: Work, rows: list[Row]) -> list[Row]:
    """The caption that every writer writes of every clip."""
    wanted = [CaptionWanted(row, writer) for row in rows for writer in work.options.writers]
    asked = ask_captions(work, wanted, prompt=f"{CAPTION}.caption")
    made: list[Row] = []
    for each, outcome in zip(wanted, asked, strict=True):
        row: Row = {"video": each.row["video"], "captioner": each.model.name}
        if outcome.value is None:
            made.append({**row, "dropped": f"{NOTHING}: {why_none(outcome)}"})
        else:
            made.append({**row, "caption": outcome.value})
    return made


def write_pairs(work: Work, rows: list[Row]) -> list[Row]:
    """Pairs of both roads: from captions by the solvers in turn, from frames by every writer.

    Ours: each reply is asked for twice as many pairs as may stay of a clip, as pairs that only one
    road sees are dropped.
    """
    clips = kept(work.rows["clips"])
    work.expect(clips)
    options = work.options
    turns = {writer.name: place for place, writer in enumerate(options.writers)}
    of_captions = [(row, _in_turn(options, turns[row["captioner"]])) for row in rows]
    of_frames = [(row, writer) for row in clips for writer in options.writers]
    wanted = chain(
        (_pairs_wanted(work, model, row=row) for row, model in of_captions),
        (_pairs_wanted(work, model, shown=work.shown(row)) for row, model in of_frames),
    )
    asked = iter(work.ask(wanted, n=len(of_captions) + len(of_frames), what="pairs"))
    written = partial(written_rows, work, keys=KEYS, most=_most(work))
    made = [
        *written(
            [(row, model, next(asked)) for row, model in of_captions],
            source="caption",
            carried=("captioner",),
        ),
        *written([(row, model, next(asked)) for row, model in of_frames], source="frames"),
    ]
    places = {row["video"]: place for place, row in enumerate(clips)}
    return sorted(made, key=lambda row: places[row["video"]])


def _in_turn(options: Options, turn: int) -> Model:
    return options.solvers[turn % len(options.solvers)]


def _n_pairs(work: Work) -> int:
    return 2 * work.options.per_video


def _most(work: Work) -> int:
    return max(100, 3 * _n_pairs(work))


def _pairs_wanted(
    work: Work, model: Model, *, row: Row | None = None, shown: Shown | None = None
) -> Wanted[Written]:
    """A request for pairs, from the caption of a row or from frames."""
    categories = flat_categories(work, CATEGORIES)
    n_pairs = _n_pairs(work)
    name = FROM_FRAMES if row is None else FROM_CAPTION
    slots = {"n_pairs": str(n_pairs), "categories": categories.text}
    if row is not None:
        slots["caption"] = row["caption"]
    messages = work.prompts.load(name).render(**slots)
    return Wanted(
        model=model,
        prompt=name,
        messages=messages if shown is None else with_frames(messages, shown),
        read=partial(read_items, keys=KEYS, most=_most(work)),
        keys=KEYS,
        typical=partial(_typical, categories.names, n_pairs),
        temperature=0.7,
        max_tokens=work.options.max_tokens,
    )


def _typical(categories: tuple[str, ...], n_pairs: int) -> str:
    items = [
        typical_item(
            category=categories[place % len(categories)],
            question=f"Is the person in the middle of the picture holding thing number {place}?",
            answer="no" if place % 3 == 2 else "yes",
        )
        for place in range(n_pairs)
    ]
    return json.dumps(items)
