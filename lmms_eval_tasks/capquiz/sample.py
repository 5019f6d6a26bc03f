"""CapQuiz's file for the sample: multiple-choice questions, derived from what a scene shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from lmms_eval_captions.lmms_eval_tasks.sample import share_clips, write_lines
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES, Color, Shape, Thing
from lmms_eval_captions.lmms_eval_tasks.sample.wording import (
    CAMERA,
    NUMBERS,
    event,
    motion,
    position,
    with_article,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from lmms_eval_captions.lmms_eval_tasks.sample.scenes import Scene

_N_OPTIONS = 5
_MOTIONS = (
    "it does not move",
    "it moves to the left",
    "it moves to the right",
    "it moves up",
    "it moves down",
)
_POSITIONS = (
    "on the left", "on the right", "in the center", "in the upper middle", "in the lower middle",
)  # fmt: skip
_EVENTS = (
    "nothing besides objects moving", "the picture gets darker", "the picture gets brighter",
    "the camera pans left", "the camera zooms in", "there is a fire",
)  # fmt: skip


def write_sample(root: Path, clips: Path) -> None:
    """Write ``capquiz/`` in the layout that the task reads."""
    share_clips(clips, root / "capquiz/videos")
    rows = (
        {"video": f"{scene.video_id}.mp4", "domain": "Animation", "questions": quiz(scene, number)}
        for number, scene in enumerate(SCENES)
    )
    write_lines(root / "capquiz" / "capquiz.jsonl", rows)


def quiz(scene: Scene, number: int) -> list[dict[str, object]]:
    """The questions of one clip, their answers true by construction.

    Args:
        scene: The clip.
        number: Position of the clip in the sample, >= 0; moves the right option's place.
    """
    return [
        _row(category, question, answer, pool, place=number + index)
        for index, (category, question, answer, pool) in enumerate(_facts(scene))
    ]


def _facts(scene: Scene) -> Iterator[tuple[str, str, str, Sequence[str]]]:
    shot, main = scene.shots[0], scene.main
    colors, shapes = get_args(Color), get_args(Shape)
    yield (
        "Entity",
        "What is the main object at the start of the video?",
        with_article(main.name),
        [with_article(Thing(c, s).name) for c in colors[-4:] for s in shapes[:2]],
    )
    yield "Attribute", "What color is the main object at the start?", main.color, colors
    yield "Setting", "What color is the background at the start?", shot.background, colors
    yield (
        "Attribute",
        "How many objects are there at the start?",
        NUMBERS[len(shot.things)],
        NUMBERS[1:],
    )
    yield "Action", "How does the main object move in the scene?", motion(main), _MOTIONS
    yield "Action", "What does the camera do?", CAMERA[shot.camera], list(CAMERA.values())
    yield "Event", "What happens in the video?", event(scene) or _EVENTS[0], _EVENTS
    if len(shot.things) == 1:
        yield (
            "Relational Reasoning",
            "Where in the frame is the main object at the start?",
            position(main.center),
            _POSITIONS,
        )


def _row(
    category: str, question: str, answer: str, pool: Sequence[str], *, place: int
) -> dict[str, object]:
    """One question; the right option stands at a place that follows from the clip's number."""
    options = [option for option in pool if option != answer][: _N_OPTIONS - 1]
    options.insert(place % _N_OPTIONS, answer)
    return {"category": category, "question": question, "options": options, "answer": answer}
