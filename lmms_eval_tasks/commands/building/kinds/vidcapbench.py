"""VidCapBench: open questions of four dimensions, kept by how stably captions are judged by them.

Source: VidCapBench, sections 3.3.2 and 3.4.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.commands.building.captioning import (
    CaptionWanted,
    ask_captions,
    why_none,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.choice import choose_balanced
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.judged import (
    N_CAPTIONS,
    flag_pairs,
    judge_pairs,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.judged import (
    PROMPTS as JUDGING,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.open_form import open_fault
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.review import (
    PROMPT as REVIEW,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.review import review_pairs
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.similar import (
    by_video,
    drop_repeated,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.subsets import split_pairs
from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import with_frames
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.dimensions import (
    PROMPT as CATEGORIES,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.dimensions import (
    dimensions_for,
    place_of,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.kind import Kind
from lmms_eval_captions.lmms_eval_tasks.commands.building.official_files import write_file
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.people import PEOPLE
from lmms_eval_captions.lmms_eval_tasks.commands.building.reading_clips import CLIPS
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.categories import Categories
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.lists import Written, read_items
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import Stage
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Wanted, Work
from lmms_eval_captions.lmms_eval_tasks.commands.building.writing import (
    NOTHING,
    checked_rows,
    typical_item,
    written_rows,
)
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.data import (
    CATEGORIES as NAMES,
)
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.data import SUBSETS, questions_file

KEYS: Final = ("primary_category", "sub_category", "question", "answer")
_WRITTEN: Final = ("question", "answer", "sub_category", "primary_category")
"""Of a pair, in the official file."""
_PAIRS: Final = "build_vidcapbench_pairs"
_CAPTION: Final = "vidcapbench_caption"
_TEMPERATURE: Final = 0.7
"""Of captions and pairs: three seeds are to give three captions. Ours, the paper names none."""


def write_captions(work: Work, rows: list[Row]) -> list[Row]:
    """Clips with three captions by the last writer, who is another than the one of the pairs.

    A clip without the first caption is dropped; where another one is missing, pairs are judged by
    what is there.
    """
    writer = work.options.writers[-1]
    wanted = [CaptionWanted(row, writer, seed) for row in rows for seed in range(N_CAPTIONS)]
    prompt = f"{_CAPTION}.free"
    asked = iter(ask_captions(work, wanted, prompt=prompt, temperature=_TEMPERATURE))
    made: list[Row] = []
    for clip in rows:
        outcomes = [next(asked) for _ in range(N_CAPTIONS)]
        row: Row = {
            "video": clip["video"],
            "captioner": writer.name,
            "captions": [outcome.value for outcome in outcomes],
        }
        if outcomes[0].value is None:
            row["dropped"] = f"{NOTHING} for the first caption: {why_none(outcomes[0])}"
        made.append(row)
    return made


def write_pairs(work: Work, rows: list[Row]) -> list[Row]:
    """The pairs that the first writer writes about every clip."""
    work.expect(rows)
    n_pairs = work.options.per_video
    most = max(100, 3 * n_pairs)
    categories = dimensions_for(work)
    writer = work.options.writers[0]
    messages = work.prompts.load(_PAIRS).render(n_pairs=str(n_pairs), categories=categories.text)

    def wanted() -> Iterator[Wanted[Written]]:
        for row in rows:
            yield Wanted(
                model=writer,
                prompt=_PAIRS,
                messages=with_frames(messages, work.shown(row)),
                read=partial(read_items, keys=KEYS, most=most),
                keys=KEYS,
                typical=partial(_typical, categories, n_pairs),
                temperature=_TEMPERATURE,
                max_tokens=work.options.max_tokens,
            )

    asked = work.ask(wanted(), n=len(rows), what="pairs")
    of = [(row, writer, each) for row, each in zip(rows, asked, strict=True)]
    return list(written_rows(work, of, keys=KEYS, most=most))


def check_form(work: Work, rows: list[Row]) -> list[Row]:
    """Pairs, dropped where they are of another form than was asked for."""
    categories = dimensions_for(work)

    def named(row: Row) -> Row:
        place = place_of(row["primary_category"], row["sub_category"], categories)
        if place is None:
            return row
        primary, sub = place
        category = f"{primary}: {sub}"
        return {**row, "category": category, "primary_category": primary, "sub_category": sub}

    def fault(row: Row) -> str | None:
        if "category" not in row:
            return "form: a category that was not asked for"
        return open_fault(row["question"], row["answer"])

    return list(drop_repeated(checked_rows([named(row) for row in rows], fault)))


def choose(work: Work, rows: list[Row]) -> list[Row]:
    """At most so many pairs per clip, spread over the sub categories."""
    return choose_balanced(
        work, rows, group=lambda row: str(row["category"]), order=lambda row: "flag" in row
    )


def write_files(work: Work, rows: list[Row]) -> Mapping[str, int]:
    """A file for each subset that has pairs; both name every clip, as the official ones do."""
    files = {row["video"]: row["file"] for row in work.rows["clips"]}
    counts: dict[str, int] = {}
    for subset in SUBSETS:
        pairs = {
            clip[0]["video"]: [
                {key: row[key] for key in _WRITTEN} for row in clip if row["subset"] == subset
            ]
            for clip in by_video(rows)
        }
        lines = [{"video_dir": files[video], "QA_pairs": each} for video, each in pairs.items()]
        n = sum(map(len, pairs.values()))
        counts |= write_file(work.options.folder, questions_file(subset), lines, n=n)
    return counts


def stages(options: Options) -> Iterator[Stage]:
    """The pipeline; people take the place of the review where their answers are given."""
    yield CLIPS
    yield Stage(
        name="captions",
        does="have the last writer write three captions of each clip, by three seeds",
        run=write_captions,
        roles=("writer",),
        prompts=(_CAPTION,),
        options=("max_tokens",),
    )
    yield Stage(
        name="pairs",
        does="have the first writer write pairs of every dimension",
        run=write_pairs,
        roles=("writer",),
        prompts=(_PAIRS, CATEGORIES),
        options=("per_video", "max_tokens"),
    )
    yield Stage(
        name="form",
        does="drop pairs of another form than was asked for",
        run=check_form,
        prompts=(CATEGORIES,),
    )
    yield Stage(
        name="judged",
        does="judge the first caption three times and the others once by each pair",
        run=judge_pairs,
        roles=("solver",),
        prompts=JUDGING,
    )
    yield Stage(
        name="flagged",
        does="flag pairs whose judgements differ, or are wrong in all five",
        run=flag_pairs,
    )
    if options.labels:
        yield PEOPLE
    else:
        yield Stage(
            name="review",
            does="have a vision model keep, rewrite or drop flagged pairs (ours)",
            run=review_pairs,
            roles=("viewer", "solver"),
            prompts=(REVIEW, *JUDGING),
        )
    yield Stage(
        name="split",
        does="give pairs of motion and physical laws that are judged inconsistently to HE",
        run=split_pairs,
    )
    yield Stage(
        name="chosen",
        does="choose pairs evenly over the sub categories",
        run=choose,
        options=("per_video",),
    )


def _typical(categories: Categories, n_pairs: int) -> str:
    """Pairs that a typical caption answers, but for one in eight, which is judged wrong."""
    places = [(primary, sub) for primary, names in categories.groups.items() for sub in names]
    items = [
        typical_item(
            primary_category=places[place % len(places)][0],
            sub_category=places[place % len(places)][1],
            question=f"What is the person in the middle of the picture holding, thing {place}?",
            answer="a lamp made of brass" if place % 8 == 7 else "a red ball",
        )
        for place in range(n_pairs)
    ]
    return json.dumps(items)


VIDCAPBENCH: Final = Kind(
    name="vidcapbench",
    builds="open questions of four dimensions, by how stably captions are judged by them",
    source="VidCapBench, sections 3.3.2 and 3.4",
    tasks=("vidcapbench",),
    per_video=40,
    n_frames=16,
    categories={f"{primary}/{sub}": "" for primary, names in NAMES.items() for sub in names},
    stages=lambda options: list(stages(options)),
    write=write_files,
    video_folder="videos",
    task_files={f"vidcapbench_{subset.lower()}": questions_file(subset) for subset in SUBSETS},
)
"""``build vidcapbench``."""
