"""How the questions that stay are chosen, and where their answers stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from lmms_eval_captions.judges.protocols.capquiz import N_OPTIONS
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.similar import by_video
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import Stage
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Work

MORE: Final = "more than are wanted of a clip"
_SHORTLIST: Final = 2
"""Questions that are looked at by people or a vision model, for each one that may stay."""


def choose_balanced(
    work: Work,
    rows: Sequence[Row],
    *,
    group: Callable[[Row], str],
    order: Callable[[Row], Any],
    balance: Callable[[Row], str] = lambda _row: "",
    most: int | None = None,
) -> list[Row]:
    """At most so many questions of each clip, spread evenly over their groups.

    Each time the group that has the fewest questions of all clips so far gives its next one: of a
    few questions per clip, all groups get their share over the clips.

    Args:
        work: Says how many stay.
        rows: Questions, clip by clip.
        group: The group of a question, such as its category.
        order: What the questions of a group are taken by, the least first.
        balance: What else is to be even, such as the answer: of a group's questions one with the
            rarer value is taken first.
        most: Of a clip, by default ``--per-video``.
    """
    n_most = work.options.per_video if most is None else most
    taken: Counter[str] = Counter()
    values: Counter[str] = Counter()
    chosen: set[str] = set()
    for clip in by_video(rows):
        left = sorted(clip, key=order)
        for _ in range(min(n_most, len(clip))):
            row = min(left, key=lambda each: (taken[group(each)], values[balance(each)]))
            left.remove(row)
            taken[group(row)] += 1
            values[balance(row)] += 1
            chosen.add(row["id"])
    return [row if row["id"] in chosen else {**row, "dropped": MORE} for row in rows]


def shortlist(
    work: Work,
    rows: Sequence[Row],
    *,
    group: Callable[[Row], str],
    order: Callable[[Row], Any],
    balance: Callable[[Row], str] = lambda _row: "",
) -> list[Row]:
    """Twice as many questions of each clip as may stay: looking at each costs most of a build."""
    most = _SHORTLIST * work.options.per_video
    return choose_balanced(work, rows, group=group, order=order, balance=balance, most=most)


def shortlist_stage(what: str, run: Callable[[Work, list[Row]], list[Row]]) -> Stage:
    """The stage that keeps a shortlist of a clip's questions.

    Args:
        what: What is kept, such as ``questions``.
        run: See :func:`shortlist`.
    """
    return Stage(
        name="shortlist",
        does=f"keep twice as many {what} per clip as may stay, as each is looked at (ours)",
        run=run,
        options=("per_video", "seed"),
    )


def spread_answers(work: Work, rows: Sequence[Row]) -> list[Row]:
    """Questions whose right options stand equally often at each of the five places.

    Source: CapQuiz, figure 4c.
    """
    rng = work.rng("places")
    places: list[int] = []
    made: list[Row] = []
    for row in rows:
        if "dropped" in row:
            made.append(row)
            continue
        if not places:
            places = list(range(N_OPTIONS))
            rng.shuffle(places)
        others = [option for option in row["options"] if option != row["answer"]]
        rng.shuffle(others)
        others.insert(places.pop(), row["answer"])
        made.append({**row, "options": others})
    return made
