"""The sighted check: a vision model must find the answer in the frames.

Ours, in the place of the people who check in the papers: where nobody is at hand. A question that
the first look confirms stays; of the others two more looks decide, so that one slip of the model
neither keeps a wrong answer nor takes a right one out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Literal

from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import Shown
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.people import PEOPLE
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import Stage
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Wanted, Work
from lmms_eval_captions.lmms_eval_tasks.named_models import Model

Look = Literal["right", "wrong", "unknown"]
"""What a look says of a question's answer: the frames show it, another one, or neither."""
MakeWanted = Callable[[Work, Row, Shown, Model, int], Wanted[Look]]
"""Makes the request of one look, from a question, the frames of its clip, the viewer, and the
number of the look."""

N_LOOKS: Final = 3
REHEARSED: Final = 10
"""In an estimate one of so many questions is looked at again."""
NAME: Final = "sighted check by a vision model (ours; the paper has people)"
_DROPPED: Final = {
    "wrong": "sighted check: the frames show another answer",
    "unknown": "sighted check: the frames do not show the answer",
    None: "sighted check: no readable reply",
}


def sighted_stage(
    options: Options, what: str, wanted: MakeWanted, *, prompt: str, moved_by: tuple[str, ...] = ()
) -> Stage:
    """The stage that looks at each question; people's, where their answers are given.

    Args:
        options: Of the build.
        what: What is looked at, such as ``questions``.
        wanted: Makes the request of one look.
        prompt: Name of its prompt.
        moved_by: Names of the options that move it.
    """
    if options.labels:
        return PEOPLE
    return Stage(
        name="sighted",
        does=f"drop {what} whose answer a vision model does not find in the frames (ours)",
        run=partial(sighted_check, wanted=wanted),
        roles=("viewer",),
        prompts=(prompt,),
        options=moved_by,
    )


def sighted_check(work: Work, rows: list[Row], wanted: MakeWanted) -> list[Row]:
    """Questions with what the viewers said, dropped where most looks do not confirm the answer."""
    first = _looks(work, rows, wanted, (0,))
    is_again = [
        said != ["right"] or (work.is_rehearsal and place % REHEARSED == 0)
        for place, said in enumerate(first)
    ]
    again = [row for row, is_asked in zip(rows, is_again, strict=True) if is_asked]
    further = iter(_looks(work, again, wanted, range(1, N_LOOKS)))
    made: list[Row] = []
    for row, said, is_asked in zip(rows, first, is_again, strict=True):
        looks = [*said, *next(further)] if is_asked else said
        checked = {**row, "check": {"by": NAME, "looks": looks}}
        if looks.count("right") * 2 <= len(looks):
            checked["dropped"] = _DROPPED[_most(looks)]
        made.append(checked)
    return made


def temperature_of(number: int) -> float:
    """That of a look whose request is the same each time, or the model would say the same again.

    Args:
        number: Of the look; the first is 0.
    """
    return 0.7 if number else 0.0


def _most(looks: Sequence[Look | None]) -> Look | None:
    """What most looks that did not confirm the answer say, the first of several."""
    said = [look for look in looks if look not in ("right", None)]
    return Counter(said).most_common(1)[0][0] if said else None


def _looks(
    work: Work, rows: Sequence[Row], wanted: MakeWanted, numbers: Sequence[int]
) -> list[list[Look | None]]:
    """What each look at each question says."""
    work.expect(rows)

    def each() -> Iterator[Wanted[Look]]:
        viewers = work.options.viewers
        for row in rows:
            shown = work.shown(row)
            for number in numbers:
                yield wanted(work, row, shown, viewers[number % len(viewers)], number)

    asked = iter(work.ask(each(), n=len(rows) * len(numbers), what="sighted check"))
    return [[next(asked).value for _ in numbers] for _ in rows]
