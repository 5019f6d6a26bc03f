"""Clips, captions and questions: the stages that all kinds begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from lmms_eval_captions.construction.media import text_before_frames
from lmms_eval_captions.construction.models import Question
from lmms_eval_captions.construction.pipeline import BuildContext, Row, Stage
from lmms_eval_captions.construction.replies import (
    caption_fault,
    fault_of,
    read_free_caption,
    read_items,
)
from lmms_eval_captions.judges.endpoint.request import Asked, Reply
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.judges.protocols.prompt import file_and_key
from lmms_eval_captions.lmms_eval_tasks.named_models import Model

T = TypeVar("T")

NOTHING: Final = "no readable reply"


def _read_clips(context: BuildContext, _rows: list[Row]) -> list[Row]:
    context.frames.expect(context.videos)
    rows: list[Row] = []
    for video in context.videos:
        # Without half characters, so that what is read from the file equals what was made.
        row: Row = {"video": video.video_id, "file": video.file, "path": whole(str(video.path))}
        try:
            shown = context.frames.of(video)
        except DataError as error:
            rows.append({**row, "dropped": "the clip cannot be read", "why": whole(str(error))})
        else:
            size = "{}x{}".format(*shown.size)
            found = {"duration_s": shown.duration_s, "frames_s": shown.times_s, "size": size}
            rows.append(row | found)
    return rows


CLIPS: Final = Stage(
    "clips",
    "read the clips, and choose the frames that models are shown",
    _read_clips,
    options=("n_frames", "frame_pixels", "limit"),
)
"""First stage of every pipeline: files, lengths, and times of frames."""


MakeSlots = Callable[[Row], Mapping[str, str]]


def ask_about(
    context: BuildContext,
    wanted: Sequence[tuple[Row, Model]],
    prompt: str,
    read: Callable[[Reply], T | None],
    *,
    slots: MakeSlots = lambda _row: {},
    has_frames: bool = True,
    **further: Any,  # noqa: ANN401 - fields of a question
) -> list[Asked[T]]:
    """Return the outcomes of requests about clips, each to a model with its clip's frames."""
    text = context.prompts.load(prompt)
    if has_frames:
        context.expect([row for row, _ in wanted])

    def questions() -> Iterator[Question[T]]:
        for row, model in wanted:
            messages = text.render(**slots(row))
            if has_frames:
                messages = text_before_frames(messages, context.shown(row))
            yield Question(model=model, prompt=prompt, messages=messages, read=read, **further)

    return context.ask(questions(), n=len(wanted), what=prompt)


def write_questions(  # noqa: PLR0913 - of a request
    context: BuildContext,
    wanted: Sequence[tuple[Row, Model]],
    prompt: str,
    keys: Sequence[str],
    n_asked: int,
    slots: MakeSlots,
    *,
    has_frames: bool = True,
    temperature: float = 0.7,
    carried: Sequence[str] = (),
) -> list[Row]:
    """Return the questions that models write, and a row per reply without any.

    Replies with many more than ``n_asked`` questions are not answers; rows of questions keep the
    keys ``carried`` of the rows that they are about.
    """
    most, faults = max(100, 3 * n_asked), context.tally.faults
    max_tokens, read = context.options.max_tokens, partial(read_items, keys=keys, most=most)
    asked = ask_about(
        context, wanted, prompt, read, slots=slots, has_frames=has_frames,
        keys=keys, temperature=temperature, max_tokens=max_tokens,
    )  # fmt: skip
    source, made = "frames" if has_frames else "caption", list[Row]()
    for (row, model), each in zip(wanted, asked, strict=True):
        further = {key: row[key] for key in carried}
        about = {"video": row["video"], **further, "writer": model.name, "source": source}
        if each.value is None:
            fault: str = each.failure or "unreadable"
            if fault == "unreadable":
                fault = fault_of(each.reply, keys, most=most)
                faults[f"reply: {fault}"] += 1
            dropped = {"dropped": f"{NOTHING}: {fault}", "reply": each.reply[:2000]}
            made.append(about | dropped)
            continue
        faults["question: wrong keys"] += each.value.n_wrong_keys
        faults["question: repeated in its reply"] += each.value.n_repeated
        faults["reply: cut, complete questions are used"] += each.value.is_cut
        for index, item in enumerate(each.value.items):
            name = "/".join([row["video"], source, *further.values(), model.name, str(index)])
            made.append({**about, "id": name, **{key: item[key] for key in keys}})
    return made


def ask_captions(
    context: BuildContext,
    wanted: Sequence[tuple[Row, Model, int]],
    *,
    prompt: str,
    temperature: float = 0.0,
) -> list[Asked[str]]:
    """Return the outcomes of requests for captions in prose, and count unreadable ones."""
    text = context.prompts.text(*file_and_key(prompt))
    context.expect([row for row, _, _ in wanted])

    def questions() -> Iterator[Question[str]]:
        for row, model, seed in wanted:
            yield Question(
                model=model,
                prompt=prompt,
                messages=text_before_frames(
                    [{"role": "user", "content": text}], context.shown(row)
                ),
                read=read_free_caption,
                seed=seed,
                temperature=temperature,
                max_tokens=context.options.max_tokens,
            )

    asked = context.ask(questions(), n=len(wanted), what="captions")
    for outcome in asked:
        if outcome.failure == "unreadable":
            context.tally.faults[f"caption: {why_none(outcome)}"] += 1
    return asked


def why_none(asked: Asked[str]) -> str:
    """Return why a request gave no caption."""
    if asked.failure == "unreadable":
        return caption_fault(asked.reply) or "unreadable"
    return asked.failure or "unreadable"
