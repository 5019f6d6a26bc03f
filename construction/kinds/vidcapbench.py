"""VidCapBench: open questions of four dimensions, kept by how stably captions are judged by them.

Source: VidCapBench, sections 3.3.2 and 3.4: three captions by another model, the first judged
three times and the others once; pairs whose judgements differ, or are all negative, are reviewed by
people, corrected and judged again; unstable ones of two dimensions are the subset HE.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Final, Literal

from lmms_eval_captions.construction import (
    categories,
    filters,
    media,
    models,
    pipeline,
    replies,
    writing,
)
from lmms_eval_captions.construction.people import PEOPLE
from lmms_eval_captions.construction.pipeline import BuildContext, Options, Row, Stage
from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Message
from lmms_eval_captions.judges.protocols import vidcapbench as protocol
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.verdict import Correctness
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import CATEGORIES as NAMES
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import QUESTIONS, SUBSETS

Problem = Literal["inconsistent", "always wrong", "never answered", "not judged"]
Verdicts = Sequence[Correctness | None]
"""Shape (5,): three of the first caption, one of each other; ``None`` is unscored."""

KEYS: Final = ("primary_category", "sub_category", "question", "answer")
_OFFICIAL_KEYS: Final = ("question", "answer", "sub_category", "primary_category")
_PAIRS: Final = "build_vidcapbench_pairs"
_CATEGORIES: Final = "build_vidcapbench_categories"
_CAPTION: Final = "vidcapbench_caption"
_REVIEW: Final = "build_vidcapbench_review"
_JUDGING: Final = ("vidcapbench_answer", "vidcapbench_judge")
_N_CAPTIONS: Final = 3
_JUDGED: Final = ((0, 0), (0, 1), (0, 2), (1, 0), (2, 0))
"""Caption and seed of each judgement."""
_NOT_JUDGED: Final = "judged: no readable verdict"
_FOR_PEOPLE: Final = ("video motion", "physical laws")
_REVIEWER: Final = "review by a vision model (ours; the paper has people)"
_WHY: Final[Mapping[str, str]] = {
    "inconsistent": "three judgements of one and the same description by this pair differ",
    "always wrong": "three descriptions of the video were all judged wrong by this pair",
    "never answered": "three descriptions of the video say nothing that answers the question; the "
    "video may not show what it asks about",
}


def _write_captions(context: BuildContext, rows: list[Row]) -> list[Row]:
    """Have the last writer, other than the pairs' if possible, write three captions of each clip.

    A clip without any caption is dropped; otherwise pairs are judged by those that exist. Ours: a
    temperature of 0.7, as three seeds are to give three captions.
    """
    writer = context.options.writers[-1]
    wanted = [(row, writer) for row in rows for _ in range(_N_CAPTIONS)]
    seeds = cycle(range(_N_CAPTIONS))
    asked = iter(
        writing.ask_captions(context, wanted, f"{_CAPTION}.free", seeds=seeds, temperature=0.7)
    )
    made: list[Row] = []
    for clip in rows:
        outcomes = [next(asked) for _ in range(_N_CAPTIONS)]
        # The first one is judged three times: one that exists.
        captions = sorted((each.value for each in outcomes), key=lambda text: text is None)
        row: Row = {"video": clip["video"], "captioner": writer.name, "captions": captions}
        if captions[0] is None:
            row["dropped"] = f"{writing.NOTHING} for any caption: {writing.why_none(outcomes[0])}"
        made.append(row)
    return made


def _write_pairs(context: BuildContext, rows: list[Row]) -> list[Row]:
    n_pairs, text = context.options.per_video, categories.dimensions(context, _CATEGORIES).text
    slots = {"n_pairs": str(n_pairs), "categories": text}
    wanted = [(row, context.options.writers[0]) for row in rows]
    return writing.write_questions(context, wanted, _PAIRS, KEYS, n_pairs, lambda _row: slots)


def _check_form(context: BuildContext, rows: list[Row]) -> list[Row]:
    known = categories.dimensions(context, _CATEGORIES)

    def named(row: Row) -> Row:
        place = categories.place_of(row["primary_category"], row["sub_category"], known)
        names = dict(zip(("primary_category", "sub_category"), place or (), strict=False))
        return row | names | ({"category": ": ".join(place)} if place else {})

    def fault(row: Row) -> str | None:
        if "category" not in row:
            return "form: a category that was not asked for"
        return filters.open_fault(row["question"], row["answer"])

    return filters.drop_repeated(filters.checked_rows(map(named, rows), fault))


def _judge_pairs(context: BuildContext, rows: Sequence[Row]) -> list[Row]:
    captions = {row["video"]: row["captions"] for row in pipeline.kept(context.rows["captions"])}
    solver, options = context.options.solvers[0], context.options
    config = JudgeConfig(
        model=solver.name, max_tokens=512, timeout_s=options.timeout_s, prompts=context.prompts
    )
    jobs = (
        models.Job(solver, partial(_judge, row, captions[row["video"]], config)) for row in rows
    )
    verdicts = context.pool.run(jobs, context.tally, n=len(rows), what="judging")
    return [
        {**row, "verdicts": list(each), "judge": solver.name}
        for row, each in zip(rows, verdicts, strict=True)
    ]


async def _judge(
    row: Row, captions: Sequence[str | None], config: JudgeConfig, ask: Ask
) -> Verdicts:
    dimension, sub_category = row["primary_category"], row["sub_category"]
    question = protocol.Question(
        row["question"], row["answer"], dimension=dimension, sub_category=sub_category
    )

    async def verdict(caption: str | None, seed: int) -> Correctness | None:
        if caption is None:
            return None
        judgement = await protocol.judge_question(ask, question, caption, config=config, run=seed)
        return judgement.verdict

    return await asyncio.gather(*(verdict(captions[index], seed) for index, seed in _JUDGED))


def problem_of(verdicts: Verdicts) -> Problem | None:
    """Return the problem of a pair by its judgements; ``None`` without one.

    An unscored judgement matters only if it could change that. Ours: "negative" is the judge's
    "wrong" (-1), and a pair that no caption answers is a problem of its own.

    >>> problem_of(["correct", "partial", None, None, None])
    'inconsistent'
    >>> problem_of(["neutral", "neutral", "neutral", "correct", None]) is None
    True
    >>> problem_of(["wrong", "wrong", "wrong", "wrong", None])
    'not judged'
    >>> problem_of(["neutral", "neutral", "neutral", "wrong", None])
    'never answered'
    """
    first = verdicts[:3]
    if len({verdict for verdict in first if verdict is not None}) > 1:
        return "inconsistent"
    if None in first:
        return "not judged"
    if any(verdict in ("correct", "partial") for verdict in verdicts):
        return None
    if "neutral" in verdicts:
        return "never answered"
    return "not judged" if None in verdicts else "always wrong"


def _flag_pairs(context: BuildContext, rows: list[Row]) -> list[Row]:
    """Flag pairs with a problem; drop those that are not known to have one."""
    made = [_flagged(row) for row in rows]
    for row in made:
        if "flag" in row:
            context.tally.faults[f"flagged: {row['flag']}"] += 1
    return made


def _flagged(row: Row) -> Row:
    problem = problem_of(row["verdicts"])
    plain = {key: value for key, value in row.items() if key != "flag"}
    if problem == "not judged":
        return {**plain, "dropped": _NOT_JUDGED}
    return plain if problem is None else {**plain, "flag": problem}


def _review_pairs(context: BuildContext, rows: list[Row]) -> list[Row]:
    """Have the viewer keep, rewrite or drop flagged pairs; rewritten ones are judged again."""
    suspects = [row for row in rows if "flag" in row]
    keys = ("question", "answer", "sub_category")
    prompt, viewer = context.prompts.load(_REVIEW), context.options.viewers[0]

    def messages(row: Row) -> Sequence[Message]:
        slots = {**{key: str(row[key]) for key in keys}, "why": _WHY[row["flag"]]}
        return media.text_after_frames(prompt.render(**slots), context.shown(row))

    wanted = [(row, viewer) for row in suspects]
    asked = writing.ask_about(
        context, wanted, _REVIEW, replies.read_review, messages, max_tokens=1024
    )
    reviewed = {row["id"]: _reviewed(row, each) for row, each in zip(suspects, asked, strict=True)}
    rewritten = [row for row in pipeline.kept(reviewed.values()) if "was" in row]
    context.tally.faults["rewritten"] += len(rewritten)
    reviewed |= {row["id"]: _judged_again(row) for row in _judge_pairs(context, rewritten)}
    return filters.drop_repeated([reviewed.get(row["id"], row) for row in rows])


def _reviewed(row: Row, asked: Asked[replies.Review]) -> Row:
    """Return a pair as the viewer leaves it, with its earlier text if it is rewritten."""
    review = asked.value
    if review is None:
        return {**row, "dropped": f"review: no readable reply: {asked.failure}"}
    checked = {**row, "check": {"by": _REVIEWER, "decision": review.decision}}
    if review.decision == "drop":
        return {**checked, "dropped": "review: the frames show no one right answer"}
    if review.question is None or review.answer is None:
        return checked
    was = {"question": row["question"], "answer": row["answer"], "flag": row["flag"]}
    made = {**checked, "question": review.question, "answer": review.answer, "was": was}
    fault = filters.open_fault(review.question, review.answer)
    return made if fault is None else {**made, "dropped": f"review: rewritten, {fault}"}


def _judged_again(row: Row) -> Row:
    again = _flagged(row)
    is_wrong = again.get("flag") == "always wrong"
    fault = "always wrong again" if is_wrong else again.get("dropped")
    return {**again, "dropped": f"review: rewritten, {fault}"} if fault else again


def _split_pairs(_context: BuildContext, rows: list[Row]) -> list[Row]:
    """Move inconsistently judged pairs of motion and physical laws to the subset HE.

    Ours: such a pair of another dimension is dropped, as AE holds what judges grade stably.
    """

    def placed(row: Row) -> Row:
        if row.get("flag") != "inconsistent":
            return {**row, "subset": "AE"}
        if row["primary_category"].replace("_", " ").casefold().strip() in _FOR_PEOPLE:
            return {**row, "subset": "HE"}
        reason = "split: judged inconsistently, and of no dimension that people grade"
        return {**row, "dropped": reason}

    return [placed(row) for row in rows]


def _choose(context: BuildContext, rows: list[Row]) -> list[Row]:
    return filters.choose_balanced(context, rows, order=lambda row: "flag" in row)


def _write_files(context: BuildContext, rows: list[Row]) -> Mapping[str, int]:
    """Write a file per subset with pairs; both name every clip, as the official ones do."""
    files = {row["video"]: row["file"] for row in context.rows["clips"]}
    counts: dict[str, int] = {}
    for subset in SUBSETS:
        pairs = {
            clip[0]["video"]: [
                {key: row[key] for key in _OFFICIAL_KEYS} for row in clip if row["subset"] == subset
            ]
            for clip in filters.grouped(rows)
        }
        lines = [{"video_dir": files[video], "QA_pairs": each} for video, each in pairs.items()]
        n = sum(map(len, pairs.values()))
        counts |= pipeline.write_official(
            context.options.folder, QUESTIONS.format(subset=subset), lines, n=n
        )
    return counts


def _stages(options: Options) -> list[Stage]:
    review = Stage(
        "review", "have a vision model keep, rewrite or drop flagged pairs (ours)",
        _review_pairs, ("viewer", "solver"), (_REVIEW, *_JUDGING),
    )  # fmt: skip
    return [
        writing.CLIPS,
        Stage("captions", "have the last writer write three captions of each clip, by three seeds",
              _write_captions, ("writer",), (_CAPTION,), ("max_tokens",)),
        Stage("pairs", "have the first writer write pairs of every dimension", _write_pairs,
              ("writer",), (_PAIRS, _CATEGORIES), ("per_video", "max_tokens")),
        Stage("form", "drop pairs of another form than was asked for", _check_form,
              prompts=(_CATEGORIES,)),
        Stage("judged", "judge the first caption three times and the others once by each pair",
              _judge_pairs, ("solver",), _JUDGING),
        Stage("flagged", "flag pairs whose judgements differ, or that no caption answers",
              _flag_pairs),
        PEOPLE if options.labels else review,
        Stage("split",
              "move pairs of motion and physical laws that are judged inconsistently to HE",
              _split_pairs),
        Stage("chosen", "choose pairs evenly over the sub categories", _choose,
              options=("per_video",)),
    ]  # fmt: skip


def _plan(options: Options, _n_categories: int) -> Iterator[pipeline.Planned]:
    writers, solver, n_pairs = options.writers, options.solvers[:1], options.per_video
    caption = (f"{_CAPTION}.free",)
    yield pipeline.Planned(caption, writers[-1:], _N_CAPTIONS, 0, 1000, has_frames=True)
    yield pipeline.Planned((_PAIRS, _CATEGORIES), writers[:1], 1, 0, 190 * n_pairs, has_frames=True)
    # One in eight is flagged and, without people, reviewed and judged again.
    n_flagged = 0.0 if options.labels else n_pairs / 8
    n_judged = (n_pairs + n_flagged) * len(_JUDGED)
    yield pipeline.Planned(_JUDGING[:1], solver, n_judged, 1100, 60)
    yield pipeline.Planned(_JUDGING[1:], solver, n_judged, 200, 150)
    if n_flagged:
        yield pipeline.Planned(
            (_REVIEW,), options.viewers[:1], n_flagged, 300, 150, has_frames=True
        )


VIDCAPBENCH: Final = pipeline.Kind(
    name="vidcapbench",
    source="VidCapBench, sections 3.3.2 and 3.4",
    tasks=("vidcapbench",),
    per_video=40,
    n_frames=16,
    categories={f"{primary}/{sub}": "" for primary, names in NAMES.items() for sub in names},
    stages=_stages,
    plan=_plan,
    write=_write_files,
    task_files={f"vidcapbench_{s.lower()}": QUESTIONS.format(subset=s) for s in SUBSETS},
)
"""``build vidcapbench``: questions pipeline.kept by how stably captions are judged by them."""
