"""CapQuiz: multiple-choice questions of ten types, over-generated and then filtered.

Source: CapQuiz ("Putting Captions to the Test"), section 3.2 and figures 5 to 7.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.capquiz import LETTERS, UNKNOWN
from lmms_eval_captions.lmms_eval_tasks.capquiz.data import FILE, GROUP_OF, SUPER_OF
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.blind import (
    PROMPT as BLIND,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.blind import (
    blind_check,
    is_unread,
    listed,
    read_option,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.choice import (
    choose_balanced,
    shortlist,
    shortlist_stage,
    spread_answers,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.form import (
    category_of,
    quiz_fault,
    same_words,
    without_letters,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.sighted import (
    Look,
    sighted_stage,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.similar import (
    PROMPT as CLUSTER,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.similar import (
    by_video,
    drop_repeated,
    drop_similar,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import (
    Shown,
    behind_frames,
    with_frames,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.kind import Kind
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.reading_clips import CLIPS
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.categories import (
    Categories,
    load_categories,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.domains import read_domains
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.lists import Written, read_items
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import Stage, write_rows
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Wanted, Work
from lmms_eval_captions.lmms_eval_tasks.commands.building.writing import (
    checked_rows,
    n_written,
    typical_item,
    written_rows,
)
from lmms_eval_captions.lmms_eval_tasks.named_models import Model

KEYS: Final = ("category", "question", "options", "answer")
OTHERS: Final = "Others"
"""Domain of a clip that fits none (figure 5)."""
_DOMAIN: Final = "build_capquiz_domain"
_WRITE: Final = "build_capquiz_write"
_CATEGORIES: Final = "build_capquiz_categories"
_SIGHTED: Final = "build_capquiz_sighted"
_NUMBERS: Final = ["ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE", "TEN"]


def find_domains(work: Work, rows: list[Row]) -> list[Row]:
    """Clips with the likeliest of the 24 domains."""
    work.expect(rows)

    def wanted() -> Iterator[Wanted[Mapping[str, float]]]:
        messages = work.prompts.load(_DOMAIN).render()
        for row in rows:
            yield Wanted(
                model=work.options.writers[0],
                prompt=_DOMAIN,
                messages=with_frames(messages, work.shown(row)),
                read=partial(read_domains, known=tuple(SUPER_OF)),
                typical=lambda: '{"Nature": 0.9}',
            )

    asked = work.ask(wanted(), n=len(rows), what="domains")
    return [
        {**row, "domain": next(iter(each.value or ()), OTHERS), "domains": each.value}
        for row, each in zip(rows, asked, strict=True)
    ]


def write_pairs(work: Work, rows: list[Row]) -> list[Row]:
    """The questions that every writer writes about every clip."""
    work.expect(rows)
    categories = categories_for(work)
    n_each = n_written(work, len(categories.names))
    most = max(100, 3 * n_each * len(categories.names))
    messages = work.prompts.load(_WRITE).render(
        n_pairs=_NUMBERS[n_each - 1] if n_each <= len(_NUMBERS) else str(n_each),
        categories=categories.text,
    )
    pairs = [(row, writer) for row in rows for writer in work.options.writers]

    def wanted() -> Iterator[Wanted[Written]]:
        for row, writer in pairs:
            yield Wanted(
                model=writer,
                prompt=_WRITE,
                messages=with_frames(messages, work.shown(row)),
                read=partial(read_items, keys=KEYS, most=most),
                keys=KEYS,
                typical=partial(_typical, categories.names, n_each, writer.name),
                temperature=0.7,
                max_tokens=work.options.max_tokens,
            )

    asked = work.ask(wanted(), n=len(pairs), what="questions")
    of = [(row, writer, each) for (row, writer), each in zip(pairs, asked, strict=True)]
    return list(written_rows(work, of, keys=KEYS, most=most))


def check_form(work: Work, rows: list[Row]) -> list[Row]:
    """Questions, dropped where they are not of the form that was asked for."""
    categories = categories_for(work)
    examples = {same_words(question) for question in categories.examples}
    named = [
        {**without_letters(row), "category": category_of(row["category"], categories.names)}
        for row in rows
    ]

    def fault(row: Row) -> str | None:
        reason = quiz_fault(row, categories.names)
        is_copy = reason is None and same_words(row["question"]) in examples
        return "form: an example of the prompt" if is_copy else reason

    return list(drop_repeated(checked_rows(named, fault)))


def categories_for(work: Work) -> Categories:
    """The types of questions: the paper's ten with examples of ours, or one's own."""
    if work.options.categories is None:
        return load_categories(work.prompts, _CATEGORIES)
    text = "\n".join(
        f"- **{number}. Category: `{name}`**\n  - **Definition:** {definition}"
        for number, (name, definition) in enumerate(work.categories.items(), 1)
    )
    return Categories(text, {"": tuple(work.categories)})


def look(work: Work, row: Row, shown: Shown, viewer: Model, number: int) -> Wanted[Look]:
    """One look of a viewer: the question, its options shuffled, and "Cannot be determined"."""
    options = list(row["options"])
    work.rng("sighted", row["video"], row["question"], number).shuffle(options)
    menu = (*options, UNKNOWN)
    messages = work.prompts.load(_SIGHTED).render(
        question=row["question"],
        options=listed(menu),
        option_id_str=", ".join(LETTERS),
    )

    def read(reply: Reply) -> Look | None:
        said = read_option(reply, menu)
        if said is None or said == UNKNOWN:
            return None if said is None else "unknown"
        return "right" if said == row["answer"] else "wrong"

    return Wanted(
        model=viewer,
        prompt=_SIGHTED,
        messages=behind_frames(messages, shown),
        read=read,
        typical=lambda: LETTERS[menu.index(row["answer"])],
        seed=number,
    )


def shorten(work: Work, rows: list[Row]) -> list[Row]:
    """Twice as many questions per clip as may stay, spread as the chosen ones are."""
    return shortlist(work, rows, group=_category, order=_drawn(work))


def choose(work: Work, rows: list[Row]) -> list[Row]:
    """At most so many questions per clip, spread over the types, those of each type drawn.

    The paper has the hardest of a cluster alone. The hardest of all would be those that the solvers
    happened to miss, and those with a wrong answer; the first of all would be one writer's.
    """
    chosen = choose_balanced(work, rows, group=_category, order=_drawn(work))
    return spread_answers(work, chosen)


def _category(row: Row) -> str:
    return str(row["category"])


def _drawn(work: Work) -> Callable[[Row], tuple[bool, float]]:
    """Orders questions by chance, those behind whose blind check too few replies stand last."""
    return lambda row: (is_unread(row), work.drawn(row))


def write_files(work: Work, rows: list[Row]) -> Mapping[str, int]:
    """``capquiz.jsonl``."""
    clips = {row["video"]: row for row in work.rows["domains"]}
    lines = [
        {
            "video": clips[pairs[0]["video"]]["file"],
            "domain": clips[pairs[0]["video"]]["domain"],
            "questions": [{key: pair[key] for key in KEYS} for pair in pairs],
        }
        for pairs in by_video(rows)
    ]
    write_rows(work.options.folder / FILE, lines)
    return {FILE: len(rows)}


def stages(options: Options) -> list[Stage]:
    """The pipeline; people take the place of the sighted check where their answers are given."""
    return [
        CLIPS,
        Stage(
            name="domains",
            does="find the domain of each clip (figure 5)",
            run=find_domains,
            roles=("writer",),
            prompts=(_DOMAIN,),
        ),
        Stage(
            name="questions",
            does="have every writer write questions of every type (figure 6)",
            run=write_pairs,
            roles=("writer",),
            prompts=(_WRITE, _CATEGORIES),
            options=("per_video", "max_tokens"),
        ),
        Stage(
            name="form", does="drop questions of another form than was asked for", run=check_form
        ),
        Stage(
            name="blind",
            does="drop questions that all solvers answer without the clip (figure 7)",
            run=blind_check,
            roles=("solver",),
            prompts=(BLIND,),
            options=("seed",),
        ),
        Stage(
            name="similar",
            does="of questions that ask the same keep the hardest (figure 7)",
            run=drop_similar,
            roles=("solver",),
            prompts=(CLUSTER,),
            options=("seed",),
        ),
        shortlist_stage("questions", shorten),
        sighted_stage(options, "questions", look, prompt=_SIGHTED, moved_by=("seed",)),
        Stage(
            name="chosen",
            does="choose questions evenly over the types, spread the places of answers",
            run=choose,
            options=("per_video", "seed"),
        ),
    ]


def _typical(categories: tuple[str, ...], n_each: int, writer: str) -> str:
    """Questions that no other writer writes, as each of them goes through the filters."""
    items = [
        typical_item(
            category=category,
            options=[f"a thing of the colour number {number}" for number in range(5)],
            answer="a thing of the colour number 0",
            question=f"What does the person hold, of {category} number {place} ({writer})?",
        )
        for category in categories
        for place in range(n_each)
    ]
    return json.dumps(items)


CAPQUIZ: Final = Kind(
    name="capquiz",
    builds="multiple-choice questions, filtered by solvers that do not see the clip",
    source="CapQuiz, section 3.2, figures 5-8",
    tasks=("capquiz",),
    per_video=20,
    n_frames=16,
    categories=dict.fromkeys(GROUP_OF, ""),
    stages=stages,
    write=write_files,
    video_folder="videos",
)
"""``build capquiz``."""
