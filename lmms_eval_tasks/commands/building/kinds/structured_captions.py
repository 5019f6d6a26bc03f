"""VDC's structured captions: four aspects and a reference, of which a second turn makes the rest.

Source: AuroraCap (arXiv 2410.03051), section 3.1.2 and appendix K.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Asked, Message
from lmms_eval_captions.lmms_eval_tasks.commands.building.captioning import (
    TYPICAL_CAPTION,
    why_none,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import with_frames
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.captions import read_captions
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.free_caption import (
    free_caption_fault,
    read_free_caption,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.objects import said
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Wanted, Work
from lmms_eval_captions.lmms_eval_tasks.commands.building.writing import NOTHING

PROMPT: Final = "build_vdc_captions"
_FIRST: Final = f"{PROMPT}.first"
_SECOND: Final = f"{PROMPT}.second"

Captions = Mapping[str, str]


def write_captions(work: Work, rows: list[Row]) -> list[Row]:
    """Clips with their captions of the five aspects, by the first writer.

    A clip without a readable first reply is dropped. Without a readable second one the reference
    caption of the first stands for the detailed caption, and is counted.
    """
    first = _first_turn(work, rows)
    readable = [
        (row, each.reply, each.value)
        for row, each in zip(rows, first, strict=True)
        if each.value is not None
    ]
    second = iter(_second_turn(work, readable))
    return [
        _captioned(work, row, each, None if each.value is None else next(second))
        for row, each in zip(rows, first, strict=True)
    ]


def _captioned(work: Work, row: Row, first: Asked[Captions], second: Asked[str] | None) -> Row:
    """A clip's row, of what both turns gave."""
    writer = work.options.writers[0].name
    made: Row = {"video": row["video"], "writer": writer}
    if first.value is None or second is None:
        fault: str = first.failure or "unreadable"
        if fault == "unreadable":
            fault = free_caption_fault(first.reply) or "data"
            # An object is what was asked for.
            fault = "not the five captions" if fault == "data" else fault
            work.tally.faults[f"captions: {fault}"] += 1
        return {**made, "dropped": f"{NOTHING}: {fault}", "reply": first.reply[:2000]}
    captions = dict(first.value)
    reference = captions.pop("reference")
    if second.value is None:
        fault = why_none(second)
        work.tally.faults[f"detailed caption: {fault}, the reference caption is taken"] += 1
    detailed = second.value or reference
    return {**made, "captions": {**captions, "detailed": detailed}, "reference": reference}


def _first_turn(work: Work, rows: Sequence[Row]) -> list[Asked[Captions]]:
    work.expect(rows)
    messages = work.prompts.load(_FIRST).render()

    def wanted() -> Iterator[Wanted[Captions]]:
        for row in rows:
            yield Wanted(
                model=work.options.writers[0],
                prompt=_FIRST,
                messages=with_frames(messages, work.shown(row)),
                read=read_captions,
                typical=_typical,
                max_tokens=work.options.max_tokens,
            )

    return work.ask(wanted(), n=len(rows), what="captions")


def _second_turn(work: Work, clips: Sequence[tuple[Row, str, Captions]]) -> list[Asked[str]]:
    """The detailed captions, in the same conversations."""
    work.expect([row for row, _, _ in clips])
    opening = work.prompts.load(_FIRST).render()
    prompt = work.prompts.load(_SECOND)

    def wanted() -> Iterator[Wanted[str]]:
        for row, reply, captions in clips:
            before: list[Message] = with_frames(opening, work.shown(row))
            before.append({"role": "assistant", "content": said(reply)})
            slots = {f"{name}_caption": text for name, text in captions.items()}
            yield Wanted(
                model=work.options.writers[0],
                prompt=_SECOND,
                messages=[*before, *prompt.render(**slots)],
                read=read_free_caption,
                typical=lambda: TYPICAL_CAPTION,
                max_tokens=work.options.max_tokens,
            )

    return work.ask(wanted(), n=len(clips), what="detailed captions")


def _typical() -> str:
    aspect = TYPICAL_CAPTION[:400]
    captions = {
        "short caption": TYPICAL_CAPTION[:120],
        "background caption": aspect,
        "main object caption": aspect,
        "camera caption": aspect,
        "reference caption": TYPICAL_CAPTION,
    }
    return json.dumps(captions)
