"""VCapsBench: yes-no questions that were written both from captions and from frames.

Source: VCapsBench (arXiv 2505.23484), section 3.3 and figure 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lmms_eval_captions.construction import categories, filters, pipeline, replies, writing
from lmms_eval_captions.construction.pipeline import BuildContext, Options, Row, Stage
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.benchmark import FILE, GROUP_OF

KEYS: Final = ("category", "question", "answer")
_CAPTION: Final = "vcapsbench_caption"
_FROM_CAPTION: Final = "build_vcapsbench_pairs_from_caption"
_FROM_FRAMES: Final = "build_vcapsbench_pairs_from_frames"
_CATEGORIES: Final = "build_vcapsbench_categories"
_MERGE: Final = "build_vcapsbench_merge"
_SIGHTED: Final = "build_vcapsbench_sighted"


def _write_captions(context: BuildContext, rows: list[Row]) -> list[Row]:
    wanted = [(row, writer) for row in rows for writer in context.options.writers]
    asked = writing.ask_captions(context, wanted, f"{_CAPTION}.caption")
    made: list[Row] = []
    for (clip, writer), outcome in zip(wanted, asked, strict=True):
        row: Row = {"video": clip["video"], "captioner": writer.name}
        caption = {"caption": outcome.value}
        fault = {"dropped": f"{writing.NOTHING}: {writing.why_none(outcome)}"}
        made.append(row | (fault if outcome.value is None else caption))
    return made


def _write_pairs(context: BuildContext, rows: list[Row]) -> list[Row]:
    """Write pairs from captions, by the solvers in turn, and from frames, by every writer.

    Ours: each reply is asked for twice as many pairs as may stay per clip, as those that only one
    pipeline wrote are dropped.
    """
    clips, options = pipeline.kept(context.rows["clips"]), context.options
    text, n_pairs = categories.flat_categories(context, _CATEGORIES).text, 2 * options.per_video
    slots = {"n_pairs": str(n_pairs), "categories": text}
    turns = {writer.name: index for index, writer in enumerate(options.writers)}
    of_captions = [
        (row, options.solvers[turns[row["captioner"]] % len(options.solvers)]) for row in rows
    ]
    of_frames = [(row, writer) for row in clips for writer in options.writers]
    made = [
        *writing.write_questions(
            context, of_captions, _FROM_CAPTION, KEYS, n_pairs,
            lambda row: {**slots, "caption": row["caption"]},
            has_frames=False, carried=("captioner",),
        ),
        *writing.write_questions(
            context, of_frames, _FROM_FRAMES, KEYS, n_pairs, lambda _row: slots
        ),
    ]  # fmt: skip
    order = {row["video"]: index for index, row in enumerate(clips)}
    return sorted(made, key=lambda row: order[row["video"]])


def _check_form(context: BuildContext, rows: list[Row]) -> list[Row]:
    names = categories.flat_categories(context, _CATEGORIES).names

    def plain(row: Row) -> Row:
        category = categories.category_of(row["category"], names)
        return {**row, "category": category, "answer": filters.yes_no_of(row["answer"])}

    def fault(row: Row) -> str | None:
        if row["category"] not in names:
            return "form: a category that was not asked for"
        return filters.yes_no_fault(row["question"], row["answer"])

    # Agreement between the two pipelines is the evidence that a fact is visible.
    return filters.drop_repeated(filters.checked_rows(map(plain, rows), fault), within="source")


def _merge(context: BuildContext, rows: list[Row]) -> list[Row]:
    """Keep one of the pairs that ask the same, if both pipelines wrote it and none contradicts.

    If no reply of the solver can be read, pairs are compared by their words only; a clip whose
    pairs all come from one pipeline needs no comparison. Both are counted.

    Source: VCapsBench, section 3.3: a model merges similar pairs, and removes those that contradict
    each other or appear only once. Ours: the model only groups them, and "only once" means by one
    pipeline, as a model often repeats itself.
    """
    clips = filters.grouped(rows)
    of_both = [clip for clip in clips if len({row["source"] for row in clip}) > 1]
    asked = filters.ask_groups(context, of_both, _MERGE, replies.read_groups)
    groups = {clip[0]["video"]: each.value for clip, each in zip(of_both, asked, strict=True)}
    faults = context.tally.faults
    faults["clips with pairs of one pipeline only"] += len(clips) - len(of_both)
    faults["clips whose pairs are compared by their words only"] += sum(
        each.value is None for each in asked
    )
    made: list[Row] = []
    for clip in clips:
        made += _merged(
            context, clip, groups.get(clip[0]["video"]) or filters.by_words(clip, "question")
        )
    return made


def _merged(
    context: BuildContext, rows: Sequence[Row], groups: Sequence[Sequence[int]]
) -> list[Row]:
    made = dict(enumerate(rows))
    for group in groups:
        pairs = [rows[index] for index in sorted(group)]
        sources = sorted({str(pair["source"]) for pair in pairs})
        stays = min(pairs, key=context.drawn)["id"]
        reason = None
        if len({pair["answer"] for pair in pairs}) > 1:
            reason = "merge: contradicts another pair of its clip"
        elif len(sources) < 2:
            reason = "merge: only one road saw it"
        for index in group:
            row = {**rows[index], "group": stays, "n_same": len(group), "roads": sources}
            why = reason or (None if row["id"] == stays else "merge: the same as another")
            made[index] = row if why is None else {**row, "dropped": why}
    return list(made.values())


def _look(_context: BuildContext, row: Row, _number: int) -> filters.AboutLook:
    """Make a look of a viewer who does not know the answer."""
    slots = {"question": row["question"]}
    return slots, lambda reply: filters.compared(replies.read_yes_no(reply), row["answer"])


def _choose(context: BuildContext, rows: list[Row], most: int | None = None) -> list[Row]:
    """Choose pairs evenly over categories and answers, the most often written ones first."""

    def order(row: Row) -> tuple[int, float]:
        return -int(row["n_same"]), context.drawn(row)

    return filters.choose_balanced(context, rows, order=order, balance="answer", most=most)


def _write_files(context: BuildContext, rows: list[Row]) -> Mapping[str, int]:
    files = {row["video"]: row["file"] for row in context.rows["clips"]}
    lines = [
        {
            "video_id": files[pairs[0]["video"]],
            "qa": ["*".join(pair[key] for key in KEYS) for pair in pairs],
        }
        for pairs in filters.grouped(rows)
    ]
    return pipeline.write_official(context.options.folder, FILE, lines, n=len(rows))


def _stages(options: Options) -> list[Stage]:
    return [
        writing.CLIPS,
        Stage("captions", "have every writer write a caption of each clip", _write_captions,
              ("writer",), (_CAPTION,), ("max_tokens",)),
        Stage("pairs", "write pairs from the captions, and from the frames", _write_pairs,
              ("writer", "solver"), (_FROM_CAPTION, _FROM_FRAMES, _CATEGORIES),
              ("per_video", "max_tokens")),
        Stage("form", "drop pairs of another form than was asked for", _check_form,
              prompts=(_CATEGORIES,)),
        Stage("merge", "of pairs that ask the same keep one, if captions and frames agree on it",
              _merge, ("solver",), (_MERGE,), ("seed",)),
        filters.shortlist_stage("pairs", _choose),
        filters.sighted_stage(options, "pairs", _SIGHTED, _look),
        Stage("chosen", "choose pairs evenly over the categories, and over yes and no", _choose,
              options=("per_video", "seed")),
    ]  # fmt: skip


def _plan(options: Options, _n_categories: int) -> Iterator[pipeline.Planned]:
    writers, solvers, n_pairs = options.writers, options.solvers, 2 * options.per_video
    n_writers, n_chars = len(writers), 130 * n_pairs
    n = 2 * n_writers * n_pairs
    yield pipeline.Planned((_CAPTION,), writers, n_writers, 0, 1000, has_frames=True)
    yield pipeline.Planned((_FROM_CAPTION, _CATEGORIES), solvers, n_writers, 1000, n_chars)
    yield pipeline.Planned(
        (_FROM_FRAMES, _CATEGORIES), writers, n_writers, 0, n_chars, has_frames=True
    )
    yield pipeline.Planned((_MERGE,), solvers[:1], 1, 120 * n, 5 * n)
    if not options.labels:
        # Further looks at one in ten.
        looks = min(2 * options.per_video, n) * (1 + (filters.N_LOOKS - 1) / 10)
        yield pipeline.Planned((_SIGHTED,), options.viewers, looks, 80, 3, has_frames=True)


VCAPSBENCH: Final = pipeline.Kind(
    name="vcapsbench",
    source="VCapsBench (arXiv 2505.23484), section 3.3",
    tasks=("vcapsbench",),
    per_video=20,
    n_frames=16,
    categories=dict.fromkeys(GROUP_OF, ""),
    stages=_stages,
    plan=_plan,
    write=_write_files,
    video_folder="videos5k",
)
"""``build vcapsbench``: yes-no questions that captions and frames agree on."""
