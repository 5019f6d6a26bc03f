"""VDC: open questions about structured captions, each aspect with its own.

Source: AuroraCap (arXiv 2410.03051), sections 3.1.2 and 3.2.1, appendices K and L.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from lmms_eval_captions.construction import filters, pipeline, replies, writing
from lmms_eval_captions.construction.pipeline import BuildContext, Options, Row, Stage
from lmms_eval_captions.judges.endpoint.request import Asked, Message
from lmms_eval_captions.lmms_eval_tasks.sampling.named_models import Model
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import QUESTIONS, REFERENCES
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS

KEYS: Final = ("question", "answer")
_CAPTIONS: Final = "build_vdc_captions"
_FIRST: Final = f"{_CAPTIONS}.first"
_SECOND: Final = f"{_CAPTIONS}.second"
_PAIRS: Final = "build_vdc_pairs"
_SIGHTED: Final = "build_vdc_sighted"

Captions = Mapping[str, str]


def _write_captions(context: BuildContext, rows: list[Row]) -> list[Row]:
    """Have the first writer write captions of the five aspects, in two turns.

    Without a readable second reply the reference caption of the first is the detailed caption.
    """
    writer, max_tokens = context.options.writers[0], context.options.max_tokens
    opening, prompt = writing.with_frames(context, _FIRST), context.prompts.load(_SECOND)
    wanted = [(row, writer) for row in rows]
    first = writing.ask_about(
        context, wanted, _FIRST, replies.read_captions, opening, max_tokens=max_tokens
    )
    read = {
        row["video"]: (each.reply, each.value)
        for row, each in zip(rows, first, strict=True)
        if each.value is not None
    }

    def second_turn(row: Row) -> list[Message]:
        reply, captions = read[row["video"]]
        return [
            *opening(row),
            {"role": "assistant", "content": replies.said(reply)},
            *prompt.render(**{f"{name}_caption": text for name, text in captions.items()}),
        ]

    wanted = [(row, writer) for row in rows if row["video"] in read]
    second = iter(
        writing.ask_about(
            context, wanted, _SECOND, replies.read_free_caption, second_turn, max_tokens=max_tokens
        )
    )
    return [
        _unread(context, row, each)
        if each.value is None
        else _captioned(context, row, each.value, next(second))
        for row, each in zip(rows, first, strict=True)
    ]


def _unread(context: BuildContext, row: Row, first: Asked[Captions]) -> Row:
    fault: str = first.failure or "unreadable"
    if fault == "unreadable":
        fault = replies.caption_fault(first.reply) or "data"
        # An object is what was asked for.
        fault = "not the five captions" if fault == "data" else fault
        context.tally.faults[f"captions: {fault}"] += 1
    writer = context.options.writers[0].name
    dropped = {"dropped": f"{writing.NOTHING}: {fault}", "reply": first.reply[:2000]}
    return {"video": row["video"], "writer": writer, **dropped}


def _captioned(context: BuildContext, row: Row, first: Captions, second: Asked[str]) -> Row:
    captions = dict(first)
    reference = captions.pop("reference")
    if second.value is None:
        fault = f"detailed caption: {writing.why_none(second)}, the reference caption replaces it"
        context.tally.faults[fault] += 1
    captions["detailed"] = second.value or reference
    writer = context.options.writers[0].name
    return {"video": row["video"], "writer": writer, "captions": captions, "reference": reference}


def _write_pairs(context: BuildContext, rows: list[Row]) -> list[Row]:
    n_pairs, solver = context.options.per_video, context.options.solvers[0]
    captions: list[tuple[Row, Model]] = [
        ({"video": row["video"], "aspect": aspect, "caption": row["captions"][aspect]}, solver)
        for row in rows
        for aspect in ASPECTS
    ]
    made = writing.write_questions(
        context, captions, _PAIRS, KEYS, n_pairs,
        lambda row: {"n_pairs": str(n_pairs), "caption": row["caption"]},
        has_frames=False, temperature=0.0, carried=("aspect",),
    )  # fmt: skip
    return [{**row, "category": row["aspect"]} for row in made]


def _check_form(_context: BuildContext, rows: list[Row]) -> list[Row]:
    def fault(row: Row) -> str | None:
        return filters.open_fault(row["question"], row["answer"])

    return filters.drop_repeated(filters.checked_rows(rows, fault), within="aspect")


def _drop_similar(context: BuildContext, rows: list[Row]) -> list[Row]:
    """Drop pairs that ask for a fact again in other words, within an aspect; the first stays."""
    order = {row["id"]: index for index, row in enumerate(rows)}
    return filters.drop_similar(
        context, rows, order=lambda row: order[row["id"]], within=("video", "aspect")
    )


def _look(_context: BuildContext, row: Row, _number: int) -> filters.AboutLook:
    """Make a look of a viewer who is asked whether the answer is right."""
    slots = {key: row[key] for key in KEYS}
    return slots, lambda reply: filters.compared(replies.read_yes_no(reply), "yes")


def _choose(context: BuildContext, rows: list[Row]) -> list[Row]:
    more, most = {"dropped": filters.MORE}, context.options.per_video
    return [
        row if index < most else row | more
        for pairs in filters.grouped(rows, "video", "aspect")
        for index, row in enumerate(pairs)
    ]


def _write_files(context: BuildContext, rows: list[Row]) -> Mapping[str, int]:
    """Write ``VDC_1k.jsonl`` of the clips with pairs, and ``VDCScore_qa/<aspect>.jsonl``."""
    folder = context.options.folder
    captions = {row["video"]: row.get("captions", {}) for row in context.rows["captions"]}
    clips = filters.grouped(rows)
    videos = [clip[0]["video"] for clip in clips]
    references = [
        {"video_id": video, **{f"{aspect}_caption": captions[video][aspect] for aspect in ASPECTS}}
        for video in videos
    ]
    pipeline.write_rows(folder / REFERENCES, references)
    counts: dict[str, int] = {}
    for aspect in ASPECTS:
        of_aspect = [[row for row in clip if row["aspect"] == aspect] for clip in clips]
        lines = [
            {pairs[0]["video"]: [{key: pair[key] for key in KEYS} for pair in pairs]}
            for pairs in of_aspect
            if pairs
        ]
        counts |= pipeline.write_official(
            folder, QUESTIONS.format(aspect=aspect), lines, n=sum(map(len, of_aspect))
        )
    return counts


def _stages(options: Options) -> list[Stage]:
    return [
        writing.CLIPS,
        Stage("captions",
              "write structured captions, and in a second turn the detailed one (appendix K)",
              _write_captions, ("writer",), (_CAPTIONS,), ("max_tokens",)),
        Stage("pairs", "write open pairs about each of the five captions (appendix L)",
              _write_pairs, ("solver",), (_PAIRS,), ("per_video", "max_tokens")),
        Stage("form", "drop pairs of another form than was asked for", _check_form),
        Stage("similar", "of pairs of an aspect that ask the same keep the first (ours)",
              _drop_similar, ("solver",), (filters.CLUSTER,)),
        filters.sighted_stage(options, "pairs", _SIGHTED, _look),
        Stage("chosen", "choose the first pairs of each aspect of each clip", _choose,
              options=("per_video",)),
    ]  # fmt: skip


def _plan(options: Options, _n_categories: int) -> Iterator[pipeline.Planned]:
    writer, solver, n_pairs = options.writers[:1], options.solvers[:1], options.per_video
    first_chars, n_aspects = 2500, len(ASPECTS)
    yield pipeline.Planned((_FIRST,), writer, 1, 0, first_chars, has_frames=True)
    yield pipeline.Planned((_SECOND,), writer, 1, 2 * first_chars, 1000, has_frames=True)
    yield pipeline.Planned((_PAIRS,), solver, n_aspects, 500, 125 * n_pairs)
    yield pipeline.Planned((filters.CLUSTER,), solver, n_aspects, 150 * n_pairs, 8 * n_pairs)
    if not options.labels:
        # Further looks at one in ten.
        looks = n_aspects * n_pairs * (1 + (filters.N_LOOKS - 1) / 10)
        yield pipeline.Planned((_SIGHTED,), options.viewers, looks, 100, 3, has_frames=True)


VDC: Final = pipeline.Kind(
    name="vdc",
    source="AuroraCap (arXiv 2410.03051), sections 3.1.2 and 3.2.1, appendices K and L",
    tasks=("vdc_score",),
    per_video=20,
    n_frames=32,
    categories={},
    stages=_stages,
    plan=_plan,
    write=_write_files,
    task_files={f"vdc_{aspect}": QUESTIONS.format(aspect=aspect) for aspect in ASPECTS},
)
"""``build vdc``: open questions about captions of five aspects."""
