"""Captions in free words, which questions are made of or judged by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Asked, Message
from lmms_eval_captions.judges.protocols.prompt import file_and_key
from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import with_frames
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.free_caption import (
    free_caption_fault,
    read_free_caption,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Wanted, Work
from lmms_eval_captions.lmms_eval_tasks.named_models import Model

TYPICAL_CAPTION: Final = (
    "The person in the middle of the picture is holding a red ball. It is a woman of about thirty "
    "with short dark hair, in a yellow coat, blue trousers and white shoes, who looks down at what "
    "she holds and smiles. On her left stands a wooden bench with two bags on it, behind which a "
    "small brown dog runs after some leaves. The background is a meadow with five high trees whose "
    "branches move slowly in the wind; further away there is a row of houses with grey roofs and a "
    "church tower. The light comes from the right, soft and warm as late in the afternoon, and the "
    "colors are natural, green and brown above all. The camera follows her from left to right at "
    "the height of the eyes, then comes closer until only face and hands are seen. Everything but "
    "the trees is in focus. The mood is calm and cheerful, and the shot has no cut."
)
"""A caption of typical length, for estimates."""


@dataclass(frozen=True, slots=True)
class CaptionWanted:
    """A caption of a clip, by a model."""

    row: Row
    """That of the clip."""
    model: Model
    seed: int = 0


def ask_captions(
    work: Work, wanted: Sequence[CaptionWanted], *, prompt: str, temperature: float = 0.0
) -> list[Asked[str]]:
    """What came of requests for captions, in their order.

    Args:
        work: Counts replies that are no captions, by reason.
        wanted: Clip by clip.
        prompt: File and key of the words that ask for a caption, such as
            ``vcapsbench_caption.caption``.
        temperature: Above 0 where several seeds are to give several captions.
    """
    words = work.prompts.text(*file_and_key(prompt))
    messages: list[Message] = [{"role": "user", "content": words}]
    work.expect([each.row for each in wanted])

    def requests() -> Iterator[Wanted[str]]:
        for each in wanted:
            yield Wanted(
                model=each.model,
                prompt=prompt,
                messages=with_frames(messages, work.shown(each.row)),
                read=read_free_caption,
                typical=lambda: TYPICAL_CAPTION,
                seed=each.seed,
                temperature=temperature,
                max_tokens=work.options.max_tokens,
            )

    asked = work.ask(requests(), n=len(wanted), what="captions")
    for outcome in asked:
        if outcome.failure == "unreadable":
            work.tally.faults[f"caption: {why_none(outcome)}"] += 1
    return asked


def why_none(asked: Asked[str]) -> str:
    """Why a request gave no caption."""
    if asked.failure == "unreadable":
        return free_caption_fault(asked.reply) or "unreadable"
    return asked.failure or "unreadable"
