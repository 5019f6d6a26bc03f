"""VDC: open questions about structured captions, each aspect with its own.

Source: AuroraCap (arXiv 2410.03051), sections 3.1.2 and 3.2.1, appendices K and L.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Asked, Reply
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.choice import MORE
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.open_form import open_fault
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.sighted import (
    Look,
    sighted_stage,
    temperature_of,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.similar import (
    by_video,
    drop_repeated,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import Shown, behind_frames
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.kind import Kind
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.structured_captions import (
    PROMPT as CAPTIONS,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.structured_captions import (
    write_captions,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.official_files import write_file
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.reading_clips import CLIPS
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.lists import Written, read_pairs
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.verdicts import (
    YesNoUnknown,
    read_yes_no,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import Stage, write_rows
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Wanted, Work
from lmms_eval_captions.lmms_eval_tasks.commands.building.writing import (
    checked_rows,
    typical_item,
    written_rows,
)
from lmms_eval_captions.lmms_eval_tasks.named_models import Model
from lmms_eval_captions.lmms_eval_tasks.vdc.data import questions_file
from lmms_eval_captions.lmms_eval_tasks.vdc.references import REFERENCES
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS

KEYS: Final = ("question", "answer")
_PAIRS: Final = "build_vdc_pairs"
_SIGHTED: Final = "build_vdc_sighted"
_SAYS: Final[dict[YesNoUnknown, Look]] = {"yes": "right", "no": "wrong", "unknown": "unknown"}


def write_pairs(work: Work, rows: list[Row]) -> list[Row]:
    """The pairs that the first solver writes of each caption, clip by clip and by aspect."""
    n_pairs = work.options.per_video
    most = max(100, 3 * n_pairs)
    solver = work.options.solvers[0]
    prompt = work.prompts.load(_PAIRS)
    captions = [
        {"video": row["video"], "aspect": aspect, "caption": row["captions"][aspect]}
        for row in rows
        for aspect in ASPECTS
    ]
    wanted = (
        Wanted(
            model=solver,
            prompt=_PAIRS,
            messages=prompt.render(n_pairs=str(n_pairs), caption=row["caption"]),
            read=partial(read_pairs, most=most),
            keys=("question", "answer"),
            typical=partial(_typical, row["aspect"], n_pairs),
            max_tokens=work.options.max_tokens,
        )
        for row in captions
    )
    asked: list[Asked[Written]] = work.ask(wanted, n=len(captions), what="pairs")
    of = [(row, solver, each) for row, each in zip(captions, asked, strict=True)]
    return [
        # What the data card counts questions by.
        {**row, "category": row["aspect"]}
        for row in written_rows(
            work, of, keys=KEYS, most=most, source="caption", carried=("aspect",)
        )
    ]


def check_form(_work: Work, rows: list[Row]) -> list[Row]:
    """Pairs, dropped where they are not open, or repeat another of their aspect."""

    def fault(row: Row) -> str | None:
        return open_fault(row["question"], row["answer"])

    return list(drop_repeated(checked_rows(rows, fault), within="aspect"))


def look(work: Work, row: Row, shown: Shown, viewer: Model, number: int) -> Wanted[Look]:
    """One look of a viewer, who is asked whether the answer is right."""
    messages = work.prompts.load(_SIGHTED).render(question=row["question"], answer=row["answer"])

    def read(reply: Reply) -> Look | None:
        answer = read_yes_no(reply)
        return None if answer is None else _SAYS[answer]

    return Wanted(
        model=viewer,
        prompt=_SIGHTED,
        messages=behind_frames(messages, shown),
        read=read,
        typical=lambda: "Yes",
        seed=number,
        temperature=temperature_of(number),
    )


def choose(work: Work, rows: list[Row]) -> list[Row]:
    """At most so many pairs per aspect of each clip, the first ones."""
    taken: Counter[tuple[str, str]] = Counter()
    made: list[Row] = []
    for row in rows:
        key = row["video"], row["aspect"]
        taken[key] += 1
        made.append(row if taken[key] <= work.options.per_video else {**row, "dropped": MORE})
    return made


def write_files(work: Work, rows: list[Row]) -> Mapping[str, int]:
    """``VDC_1k.jsonl`` of the clips that have pairs, and ``VDCScore_qa/<aspect>.jsonl``."""
    folder = work.options.folder
    captions = {row["video"]: row.get("captions", {}) for row in work.rows["captions"]}
    clips = by_video(rows)
    references = [
        {
            "video_id": clip[0]["video"],
            **{f"{aspect}_caption": captions[clip[0]["video"]][aspect] for aspect in ASPECTS},
        }
        for clip in clips
    ]
    write_rows(folder / REFERENCES, references)
    counts: dict[str, int] = {}
    for aspect in ASPECTS:
        of_aspect = [[row for row in clip if row["aspect"] == aspect] for clip in clips]
        lines = [
            {pairs[0]["video"]: [{key: pair[key] for key in KEYS} for pair in pairs]}
            for pairs in of_aspect
            if pairs
        ]
        name = questions_file(aspect)
        counts |= write_file(folder, name, lines, n=sum(map(len, of_aspect)))
    return counts


def stages(options: Options) -> Iterator[Stage]:
    """The pipeline; people take the place of the sighted check where their answers are given."""
    yield CLIPS
    yield Stage(
        name="captions",
        does="write structured captions, and in a second turn the detailed one (appendix K)",
        run=write_captions,
        roles=("writer",),
        prompts=(CAPTIONS,),
        options=("max_tokens",),
    )
    yield Stage(
        name="pairs",
        does="write open pairs about each of the five captions (appendix L)",
        run=write_pairs,
        roles=("solver",),
        prompts=(_PAIRS,),
        options=("per_video", "max_tokens"),
    )
    yield Stage(name="form", does="drop pairs of another form than was asked for", run=check_form)
    yield sighted_stage(options, "pairs", look, prompt=_SIGHTED)
    yield Stage(
        name="chosen",
        does="choose the first pairs of each aspect of each clip",
        run=choose,
        options=("per_video",),
    )


def _typical(aspect: str, n_pairs: int) -> str:
    items = [
        typical_item(
            question=f"What does the {aspect} caption say of thing number {place}?",
            answer="It is a red ball with white stripes",
        )
        for place in range(n_pairs)
    ]
    return json.dumps(items)


VDC: Final = Kind(
    name="vdc",
    builds="open questions about captions of five aspects",
    source="AuroraCap (arXiv 2410.03051), sections 3.1.2 and 3.2.1, appendices K and L",
    tasks=("vdc_score",),
    per_video=20,
    n_frames=32,
    categories={},
    stages=lambda options: list(stages(options)),
    write=write_files,
    video_folder="videos",
    task_files={f"vdc_{aspect}": questions_file(aspect) for aspect in ASPECTS},
)
"""``build vdc``."""
