"""Pairs of two roads become one pool: what is said twice stays once, what only one road saw goes.

Source: VCapsBench, section 3.3: a model merges similar pairs, filters out those of one question
with different answers, and removes those that appear only once. Ours: the model only groups them,
the rest is counted; "only once" is on one of the two roads, as a model often repeats itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.form import same_words
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.similar import (
    by_video,
    grouping_wanted,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.clusters import read_groups
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Wanted, Work

PROMPT: Final = "build_vcapsbench_merge"
_CONTRADICTS: Final = "merge: contradicts another pair of its clip"
_ONE_ROAD: Final = "merge: only one road saw it"
_SAME: Final = "merge: the same as another"

Groups = tuple[tuple[int, ...], ...]


def merge_roads(work: Work, rows: list[Row]) -> list[Row]:
    """Pairs of which each asks another thing, and was written on both roads.

    Of pairs that ask the same one is drawn. Where no reply of the solver can be read, a clip's
    pairs are compared by their words alone; a clip of which only one road wrote pairs needs no
    comparison. Both are counted.

    Args:
        work: Has the solver.
        rows: Pairs clip by clip, with their road as ``source``.
    """
    clips = by_video(rows)
    of_both = [clip for clip in clips if len({row["source"] for row in clip}) > 1]
    asked = work.ask((_wanted(work, clip) for clip in of_both), n=len(of_both), what="merging")
    groups = {clip[0]["video"]: each.value for clip, each in zip(of_both, asked, strict=True)}
    faults = work.tally.faults
    faults["clips of which only one road wrote pairs"] += len(clips) - len(of_both)
    faults["clips whose pairs are compared by their words alone"] += sum(
        each.value is None for each in asked
    )
    made: list[Row] = []
    for clip in clips:
        made += _merged(work, clip, groups.get(clip[0]["video"]) or by_words(clip))
    return made


def by_words(rows: Sequence[Row]) -> Groups:
    """The groups of pairs whose questions have the same words.

    >>> by_words([{"question": "Is it red?"}, {"question": "Why?"}, {"question": "is it  Red?"}])
    ((0, 2), (1,))
    """
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(same_words(row["question"]), []).append(place)
    return tuple(map(tuple, groups.values()))


def _merged(work: Work, rows: Sequence[Row], groups: Groups) -> list[Row]:
    """A clip's pairs, in their order."""
    made = dict(enumerate(rows))
    for group in groups:
        pairs = [rows[place] for place in sorted(group)]
        sources = sorted({str(pair["source"]) for pair in pairs})
        stays = min(pairs, key=work.drawn)["id"]
        reason = None
        if len({pair["answer"] for pair in pairs}) > 1:
            reason = _CONTRADICTS
        elif len(sources) < 2:
            reason = _ONE_ROAD
        for place in group:
            row = {**rows[place], "group": stays, "n_same": len(group), "roads": sources}
            why = reason or (None if row["id"] == stays else _SAME)
            made[place] = row if why is None else {**row, "dropped": why}
    return list(made.values())


def _wanted(work: Work, rows: Sequence[Row]) -> Wanted[Groups]:
    return grouping_wanted(
        work,
        rows,
        prompt=PROMPT,
        read=partial(read_groups, n=len(rows)),
        typical=lambda: by_words(rows),
    )
