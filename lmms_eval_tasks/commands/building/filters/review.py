"""Flagged pairs are looked at: kept, written anew and judged again, or dropped.

Source: VidCapBench, section 3.3.2 (people review them, correct the pairs, and these are evaluated
again). Ours, in the place of people where nobody is at hand: a vision model reviews them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Asked
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.judged import (
    NOT_JUDGED,
    flagged,
    judge_pairs,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.open_form import open_fault
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.similar import drop_repeated
from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import behind_frames
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.verdicts import (
    Review,
    read_review,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Wanted, Work, kept

PROMPT: Final = "build_vidcapbench_review"
NAME: Final = "review by a vision model (ours; the paper has people)"
_WHY: Final[Mapping[str, str]] = {
    "inconsistent": "three judgements of one and the same description by this pair differ",
    "always wrong": "three descriptions of the video were all judged wrong by this pair",
}


def review_pairs(work: Work, rows: list[Row]) -> list[Row]:
    """Pairs, the flagged ones as the viewer leaves them, the others as they are.

    What is written anew is judged anew, and dropped where it is always wrong once more.
    """
    suspects = [row for row in rows if "flag" in row]
    asked = _reviews(work, suspects)
    reviewed = [_reviewed(row, each) for row, each in zip(suspects, asked, strict=True)]
    anew = [row for row in kept(reviewed) if "was" in row]
    judged = {row["id"]: _judged_again(row) for row in judge_pairs(work, anew)}
    work.tally.faults["written anew"] += len(anew)
    by_id = {row["id"]: judged.get(row["id"], row) for row in reviewed}
    return list(drop_repeated([by_id.get(row["id"], row) for row in rows]))


def _reviewed(row: Row, asked: Asked[Review]) -> Row:
    """A pair as the viewer leaves it; with what it was where it is written anew."""
    review = asked.value
    if review is None:
        return {**row, "dropped": f"review: no readable reply: {asked.failure}"}
    checked = {**row, "check": {"by": NAME, "decision": review.decision}}
    if review.decision == "drop":
        return {**checked, "dropped": "review: the frames show no one right answer"}
    if review.question is None or review.answer is None:
        return checked
    was = {"question": row["question"], "answer": row["answer"], "flag": row["flag"]}
    made = {**checked, "question": review.question, "answer": review.answer, "was": was}
    fault = open_fault(review.question, review.answer)
    return made if fault is None else {**made, "dropped": f"review: written anew, {fault}"}


def _judged_again(row: Row) -> Row:
    again = flagged(row)
    if again.get("flag") == "always wrong":
        return {**again, "dropped": "review: written anew, and always wrong again"}
    is_judged = again.get("dropped") != NOT_JUDGED
    return again if is_judged else {**again, "dropped": f"review: written anew, {NOT_JUDGED}"}


def _reviews(work: Work, rows: Sequence[Row]) -> list[Asked[Review]]:
    work.expect(rows)
    prompt = work.prompts.load(PROMPT)

    def wanted() -> Iterator[Wanted[Review]]:
        for row in rows:
            slots = {key: str(row[key]) for key in ("question", "answer", "sub_category")}
            messages = prompt.render(**slots, why=_WHY[row["flag"]])
            yield Wanted(
                model=work.options.viewers[0],
                prompt=PROMPT,
                messages=behind_frames(messages, work.shown(row)),
                read=read_review,
                typical=_typical,
                max_tokens=1024,
            )

    return work.ask(wanted(), n=len(rows), what="review")


def _typical() -> str:
    """The question anew, and an answer that a typical caption holds."""
    question = "What is the person in the middle of the picture holding in both hands?"
    return json.dumps({"decision": "rewrite", "question": question, "answer": "a red ball"})
