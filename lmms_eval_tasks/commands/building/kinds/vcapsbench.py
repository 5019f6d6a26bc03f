"""VCapsBench: yes-no questions that two roads, from captions and from frames, agree on.

Source: VCapsBench (arXiv 2505.23484), section 3.3 and figure 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.choice import (
    choose_balanced,
    shortlist,
    shortlist_stage,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.form import category_of
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.open_form import (
    yes_no_fault,
    yes_no_of,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.sighted import (
    Look,
    sighted_stage,
    temperature_of,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.similar import (
    by_video,
    drop_repeated,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.two_roads import (
    PROMPT as MERGE,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.two_roads import merge_roads
from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import (
    Shown,
    behind_frames,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.kind import Kind
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.two_road_pairs import (
    CAPTION,
    CATEGORIES,
    FROM_CAPTION,
    FROM_FRAMES,
    KEYS,
    write_captions,
    write_pairs,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.reading_clips import CLIPS
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.verdicts import read_yes_no
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import Stage, write_rows
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Wanted, Work
from lmms_eval_captions.lmms_eval_tasks.commands.building.writing import (
    checked_rows,
    flat_categories,
)
from lmms_eval_captions.lmms_eval_tasks.named_models import Model
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.data import FILE, GROUP_OF

_SIGHTED: Final = "build_vcapsbench_sighted"


def check_form(work: Work, rows: list[Row]) -> list[Row]:
    """Pairs, dropped where they are of another form than was asked for."""
    names = flat_categories(work, CATEGORIES).names
    plain = [
        {
            **row,
            "category": category_of(row["category"], names),
            "answer": yes_no_of(row["answer"]),
        }
        for row in rows
    ]

    def fault(row: Row) -> str | None:
        if row["category"] not in names:
            return "form: a category that was not asked for"
        return yes_no_fault(row["question"], row["answer"])

    # The other road may say the same: that is what tells that it is there.
    return list(drop_repeated(checked_rows(plain, fault), within="source"))


def look(work: Work, row: Row, shown: Shown, viewer: Model, number: int) -> Wanted[Look]:
    """One look of a viewer, who is not told the answer."""
    messages = work.prompts.load(_SIGHTED).render(question=row["question"])

    def read(reply: Reply) -> Look | None:
        said = read_yes_no(reply)
        if said is None or said == "unknown":
            return said
        return "right" if said == row["answer"] else "wrong"

    return Wanted(
        model=viewer,
        prompt=_SIGHTED,
        messages=behind_frames(messages, shown),
        read=read,
        typical=lambda: str(row["answer"]),
        seed=number,
        temperature=temperature_of(number),
    )


def shorten(work: Work, rows: list[Row]) -> list[Row]:
    """Twice as many pairs per clip as may stay, spread as the chosen ones are."""
    return shortlist(work, rows, group=_category, order=_often_first(work), balance=_answer)


def choose(work: Work, rows: list[Row]) -> list[Row]:
    """At most so many pairs per clip, spread over categories and over yes and no.

    Of a category those come first that were written most often; of several, one is drawn.
    """
    return choose_balanced(work, rows, group=_category, order=_often_first(work), balance=_answer)


def _category(row: Row) -> str:
    return str(row["category"])


def _answer(row: Row) -> str:
    return str(row["answer"])


def _often_first(work: Work) -> Callable[[Row], tuple[int, float]]:
    return lambda row: (-int(row["n_same"]), work.drawn(row))


def write_files(work: Work, rows: list[Row]) -> Mapping[str, int]:
    """``VCapsBench_100KQA.jsonl``."""
    files = {row["video"]: row["file"] for row in work.rows["clips"]}
    lines = [
        {
            "video_id": files[pairs[0]["video"]],
            "qa": ["*".join(pair[key] for key in KEYS) for pair in pairs],
        }
        for pairs in by_video(rows)
    ]
    write_rows(work.options.folder / FILE, lines)
    return {FILE: len(rows)}


def stages(options: Options) -> Iterator[Stage]:
    """The pipeline; people take the place of the sighted check where their answers are given."""
    yield CLIPS
    yield Stage(
        name="captions",
        does="have every writer write a caption of each clip",
        run=write_captions,
        roles=("writer",),
        prompts=(CAPTION,),
        options=("max_tokens",),
    )
    yield Stage(
        name="pairs",
        does="write pairs on two roads: from the captions, and from the frames",
        run=write_pairs,
        roles=("writer", "solver"),
        prompts=(FROM_CAPTION, FROM_FRAMES, CATEGORIES),
        options=("per_video", "max_tokens"),
    )
    yield Stage(
        name="form",
        does="drop pairs of another form than was asked for",
        run=check_form,
        prompts=(CATEGORIES,),
    )
    yield Stage(
        name="merge",
        does="of pairs that ask the same keep one, where both roads saw it and none contradicts",
        run=merge_roads,
        roles=("solver",),
        prompts=(MERGE,),
        options=("seed",),
    )
    yield shortlist_stage("pairs", shorten)
    yield sighted_stage(options, "pairs", look, prompt=_SIGHTED)
    yield Stage(
        name="chosen",
        does="choose pairs evenly over the categories, and over yes and no",
        run=choose,
        options=("per_video", "seed"),
    )


VCAPSBENCH: Final = Kind(
    name="vcapsbench",
    builds="yes-no questions that were written both from captions and from frames",
    source="VCapsBench (arXiv 2505.23484), section 3.3",
    tasks=("vcapsbench",),
    per_video=20,
    n_frames=16,
    categories=dict.fromkeys(GROUP_OF, ""),
    stages=lambda options: list(stages(options)),
    write=write_files,
    video_folder="videos5k",
)
"""``build vcapsbench``."""
