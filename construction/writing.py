"""Clips, captions and questions: the stages that all kinds begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
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
from lmms_eval_captions.judges.endpoint.request import Asked, Message, Reply
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.judges.protocols.prompt import file_and_key
from lmms_eval_captions.lmms_eval_tasks.sampling.named_models import Model

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
Wanted = Sequence[tuple[Row, Model]]
"""Rows about clips, each with the model to ask."""


def ask_about(
    context: BuildContext,
    wanted: Wanted,
    prompt: str,
    read: Callable[[Reply], T | None],
    messages: Callable[[Row], Sequence[Message]],
    *,
    seeds: Iterable[int] = repeat(0),
    **further: Any,  # noqa: ANN401 - fields of a question
) -> list[Asked[T]]:
    """Return the outcomes of requests about clips; :func:`with_frames` makes messages of them."""
    context.expect([row for row, _ in wanted])
    questions = (
        Question(
            model=model, prompt=prompt, messages=messages(row), read=read, seed=seed, **further
        )
        for (row, model), seed in zip(wanted, seeds, strict=False)
    )
    return context.ask(questions, n=len(wanted), what=prompt)


def with_frames(
    context: BuildContext, prompt: str, slots: MakeSlots = lambda _row: {}
) -> Callable[[Row], Sequence[Message]]:
    """Return the maker of messages of a prompt with the frames of a row's clip."""
    text = context.prompts.load(prompt)
    return lambda row: text_before_frames(text.render(**slots(row)), context.shown(row))


def write_questions(  # noqa: PLR0913 - of a request
    context: BuildContext,
    wanted: Wanted,
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
    text = context.prompts.load(prompt)
    asked = ask_about(
        context, wanted, prompt, partial(read_items, keys=keys, most=most),
        with_frames(context, prompt, slots) if has_frames else lambda r: text.render(**slots(r)),
        keys=keys, temperature=temperature, max_tokens=context.options.max_tokens,
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
    wanted: Wanted,
    prompt: str,
    *,
    seeds: Iterable[int] = repeat(0),
    temperature: float = 0.0,
) -> list[Asked[str]]:
    """Return the outcomes of requests for captions in prose, and count unreadable ones."""
    message: Message = {"role": "user", "content": context.prompts.text(*file_and_key(prompt))}
    asked = ask_about(
        context, wanted, prompt, read_free_caption,
        lambda row: text_before_frames([message], context.shown(row)),
        seeds=seeds, temperature=temperature, max_tokens=context.options.max_tokens,
    )  # fmt: skip
    for outcome in asked:
        if outcome.failure == "unreadable":
            context.tally.faults[f"caption: {why_none(outcome)}"] += 1
    return asked


def why_none(asked: Asked[str]) -> str:
    """Return why a request gave no caption."""
    if asked.failure == "unreadable":
        return caption_fault(asked.reply) or "unreadable"
    return asked.failure or "unreadable"
