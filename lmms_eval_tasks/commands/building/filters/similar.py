"""Questions about a clip that ask the same: of each group the hardest stays.

Source: CapQuiz, section 3.2.2 and figure 7 ("Question Deduplication Prompt"): first by question,
then by answer. Ours: a group is what has the same question and the same answer; the same question
with another answer is another question, or wrong, which the check by the frames tells.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Final, TypeVar

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.blind import hardness
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.form import same_words
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.clusters import read_clusters
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Wanted, Work

PROMPT: Final = "build_capquiz_cluster"
_SAME: Final = "the same as another question of its clip"

T = TypeVar("T")
Clusters = tuple[tuple[tuple[int, ...], ...], ...]


def drop_similar(work: Work, rows: list[Row]) -> list[Row]:
    """Questions, dropped where a harder one of the same clip asks and answers the same.

    Of several that are as hard one is drawn. Where no reply of the solver can be read, a clip's
    questions are compared by their words alone, and these clips are counted.
    """
    clips = by_video(rows)
    several = [clip for clip in clips if len(clip) > 1]
    asked = work.ask(
        (_wanted(work, clip) for clip in several), n=len(several), what="de-duplication"
    )
    clusters = {clip[0]["video"]: each.value for clip, each in zip(several, asked, strict=True)}
    n_unread = sum(each.value is None for each in asked)
    work.tally.faults["clips whose questions are compared by their words alone"] += n_unread

    def order(row: Row) -> tuple[float, float]:
        return hardness(row), work.drawn(row)

    made: list[Row] = []
    for clip in clips:
        groups = clusters.get(clip[0]["video"]) or _by_words(clip)
        harder = {
            index: min((clip[place] for place in group), key=order)["id"]
            for question in groups
            for group in question
            for index in group
        }
        for index, row in enumerate(clip):
            is_kept = harder.get(index, row["id"]) == row["id"]
            made.append(row if is_kept else {**row, "dropped": _SAME, "same_as": harder[index]})
    return made


def by_video(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows clip by clip, in their order."""
    return [list(clip) for _, clip in groupby(rows, key=lambda row: row["video"])]


def pairs_text(rows: Sequence[Row]) -> str:
    """Questions and answers as models are shown them, with their places."""
    pairs = [
        {"index": place, "question": row["question"], "answer": row["answer"]}
        for place, row in enumerate(rows)
    ]
    return json.dumps(pairs, ensure_ascii=False, indent=0)


def grouping_wanted(
    work: Work,
    rows: Sequence[Row],
    *,
    prompt: str,
    read: Callable[[Reply], T | None],
    typical: Callable[[], object],
) -> Wanted[T]:
    """The request that has the first solver group a clip's questions.

    Args:
        work: Has solver and prompts.
        rows: The questions, which are numbered in this order.
        prompt: Name of the prompt.
        read: Reads the groups.
        typical: The groups that are typically found.
    """
    return Wanted(
        model=work.options.solvers[0],
        prompt=prompt,
        messages=work.prompts.load(prompt).render(pairs=pairs_text(rows)),
        read=read,
        typical=lambda: json.dumps(typical()),
        max_tokens=max(256, 16 * len(rows)),
    )


def _wanted(work: Work, rows: Sequence[Row]) -> Wanted[Clusters]:
    n = len(rows)
    return grouping_wanted(
        work,
        rows,
        prompt=PROMPT,
        read=partial(read_clusters, n=n),
        typical=lambda: [[[place]] for place in range(n)],
    )


def _by_words(rows: Sequence[Row]) -> Clusters:
    groups: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        key = same_words(row["question"]), same_words(row["answer"])
        groups.setdefault(key, []).append(place)
    return tuple((tuple(places),) for places in groups.values())


def drop_repeated(rows: Sequence[Row], within: str = "video") -> Iterator[Row]:
    """Questions, dropped where an earlier one of the same clip has the same words and answer.

    Args:
        rows: Questions, those that are dropped already too.
        within: What else must be the same, such as the road on which a question came.
    """
    seen: set[tuple[str, ...]] = set()
    for row in rows:
        words = (same_words(str(row[name])) for name in ("question", "answer"))
        key = (row["video"], str(row[within]), *words)
        is_new = "dropped" in row or key not in seen
        if "dropped" not in row:
            seen.add(key)
        yield row if is_new else {**row, "dropped": "form: the words of another question"}
