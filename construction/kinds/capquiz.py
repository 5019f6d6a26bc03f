"""CapQuiz: multiple-choice questions of ten types, over-generated and then filtered.

Source: CapQuiz ("Putting Captions to the Test"), section 3.2 and figures 5 to 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from lmms_eval_captions.construction import categories, filters, pipeline, replies, writing
from lmms_eval_captions.construction.pipeline import BuildContext, Options, Row, Stage
from lmms_eval_captions.judges.protocols.capquiz import LETTERS, UNKNOWN
from lmms_eval_captions.lmms_eval_tasks.capquiz.benchmark import FILE, GROUP_OF, SUPER_OF

KEYS: Final = ("category", "question", "options", "answer")
_DOMAIN: Final = "build_capquiz_domain"
_WRITE: Final = "build_capquiz_write"
_CATEGORIES: Final = "build_capquiz_categories"
_LAYOUT: Final = "- **{number}. Category: `{name}`**\n  - **Definition:** {definition}"
_SIGHTED: Final = "build_capquiz_sighted"
_NUMBERS: Final = ["ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE", "TEN"]


def _find_domains(context: BuildContext, rows: list[Row]) -> list[Row]:
    wanted = [(row, context.options.writers[0]) for row in rows]
    read = partial(replies.read_domains, known=tuple(SUPER_OF))
    frames = writing.with_frames(context, _DOMAIN)
    asked = writing.ask_about(context, wanted, _DOMAIN, read, frames)
    return [
        {**row, "domain": next(iter(each.value or ()), replies.OTHERS), "domains": each.value}
        for row, each in zip(rows, asked, strict=True)
    ]


def _n_written(per_video: int, n_categories: int) -> int:
    """Return the number of questions per category and writer: five for each one that may stay.

    Source: CapQuiz, section 3.2.2 ("Over-generate then Filter") and figure 6, which asks for ten of
    each of ten types, of which 20 per clip stay.
    """
    return max(1, -(-5 * per_video // max(1, n_categories)))


def _write_questions(context: BuildContext, rows: list[Row]) -> list[Row]:
    types = categories.flat_categories(context, _CATEGORIES, _LAYOUT)
    n_each = _n_written(context.options.per_video, len(types.names))
    n_pairs = _NUMBERS[n_each - 1] if n_each <= len(_NUMBERS) else str(n_each)
    slots = {"n_pairs": n_pairs, "categories": types.text}
    wanted = [(row, writer) for row in rows for writer in context.options.writers]
    n_asked = n_each * len(types.names)
    return writing.write_questions(context, wanted, _WRITE, KEYS, n_asked, lambda _row: slots)


def _check_form(context: BuildContext, rows: list[Row]) -> list[Row]:
    types = categories.flat_categories(context, _CATEGORIES, _LAYOUT)
    examples = {filters.same_words(question) for question in types.examples}

    def named(row: Row) -> Row:
        category = categories.category_of(row["category"], types.names)
        return {**filters.without_letters(row), "category": category}

    def fault(row: Row) -> str | None:
        reason = filters.quiz_fault(row, types.names)
        is_copy = reason is None and filters.same_words(row["question"]) in examples
        return "form: an example of the prompt" if is_copy else reason

    return filters.drop_repeated(filters.checked_rows(map(named, rows), fault))


def _drop_similar(context: BuildContext, rows: list[Row]) -> list[Row]:
    def order(row: Row) -> tuple[float, float]:
        return filters.hardness(row), context.drawn(row)

    return filters.drop_similar(context, rows, order=order)


def _look(context: BuildContext, row: Row, number: int) -> filters.AboutLook:
    """Make a look at all options, shuffled, and "Cannot be determined"."""
    slots, read = _menu(context, row, row["options"], "sighted", number)
    return slots, lambda reply: filters.compared(read(reply), row["answer"])


def _rival(context: BuildContext, row: Row, number: int) -> filters.AboutLook:
    """Make a look at the options without the answer."""
    options = [option for option in row["options"] if option != row["answer"]]
    return _menu(context, row, options, "rival", number)


def _menu(
    context: BuildContext, row: Row, options: list[str], what: str, number: int
) -> filters.AboutLook:
    shuffled = list(options)
    context.rng(what, row["video"], row["question"], number).shuffle(shuffled)
    menu = [*shuffled, UNKNOWN]
    slots = {
        "question": row["question"],
        "options": filters.listed(menu),
        "option_id_str": ", ".join(LETTERS[: len(menu)]),
    }
    return slots, partial(replies.read_option, options=menu)


def _choose(context: BuildContext, rows: list[Row], most: int | None = None) -> list[Row]:
    """Choose questions evenly over the types, within them by chance: the hardest may be wrong."""

    def order(row: Row) -> tuple[bool, float]:
        return "unread_by" in row["blind"], context.drawn(row)

    return filters.choose_balanced(context, rows, order=order, most=most)


def _choose_and_spread(context: BuildContext, rows: list[Row]) -> list[Row]:
    return filters.spread_answers(context, _choose(context, rows))


def _write_files(context: BuildContext, rows: list[Row]) -> Mapping[str, int]:
    clips = {row["video"]: row for row in context.rows["domains"]}
    lines = [
        {
            "video": clips[pairs[0]["video"]]["file"],
            "domain": clips[pairs[0]["video"]]["domain"],
            "questions": [{key: pair[key] for key in KEYS} for pair in pairs],
        }
        for pairs in filters.grouped(rows)
    ]
    return pipeline.write_official(context.options.folder, FILE, lines, n=len(rows))


def _stages(options: Options) -> list[Stage]:
    return [
        writing.CLIPS,
        Stage("domains", "find the domain of each clip (figure 5)", _find_domains, ("writer",),
              (_DOMAIN,)),
        Stage("questions", "have every writer write questions of every type (figure 6)",
              _write_questions, ("writer",), (_WRITE, _CATEGORIES), ("per_video", "max_tokens")),
        Stage("form", "drop questions of another form than was asked for", _check_form),
        Stage("blind", "drop questions that all solvers answer without the clip (figure 7)",
              filters.blind_check, ("solver",), (filters.BLIND,), ("seed",)),
        Stage("similar", "of questions that ask the same keep the hardest (figure 7)",
              _drop_similar, ("solver",), (filters.CLUSTER,), ("seed",)),
        filters.shortlist_stage("questions", _choose),
        filters.sighted_stage(options, "questions", _SIGHTED, _look, _rival),
        Stage("chosen", "choose questions evenly over the types, spread the positions of answers",
              _choose_and_spread, options=("per_video", "seed")),
    ]  # fmt: skip


def _plan(options: Options, n_categories: int) -> Iterator[pipeline.Planned]:
    writers, solvers = options.writers, options.solvers
    n_reply = _n_written(options.per_video, n_categories) * n_categories
    n, n_trials = n_reply * len(writers), filters.N_TRIALS * len(solvers)
    yield pipeline.Planned((_DOMAIN,), writers[:1], 1, 0, 20, has_frames=True)
    yield pipeline.Planned(
        (_WRITE, _CATEGORIES), writers, len(writers), 0, 340 * n_reply, has_frames=True
    )
    yield pipeline.Planned((filters.BLIND,), solvers, n * n_trials, 220, 1)
    yield pipeline.Planned((filters.CLUSTER,), solvers[:1], 1, 150 * n, 9 * n)
    if not options.labels:
        # A look at all options and one at those without the answer; further ones at one in ten.
        looks = min(2 * options.per_video, n) * (2 + (filters.N_LOOKS - 1) / 10)
        yield pipeline.Planned((_SIGHTED,), options.viewers, looks, 220, 1, has_frames=True)


CAPQUIZ: Final = pipeline.Kind(
    name="capquiz",
    source="CapQuiz, section 3.2, figures 5-8",
    tasks=("capquiz",),
    per_video=20,
    n_frames=16,
    categories=dict.fromkeys(GROUP_OF, ""),
    stages=_stages,
    plan=_plan,
    write=_write_files,
)
"""``build capquiz``: questions filtered by solvers that do not see the clip."""
