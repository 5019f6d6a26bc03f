"""CapQuiz's file for the sample: multiple-choice questions, derived from what a scene shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

from lmms_eval_captions.judges.protocols.capquiz import N_OPTIONS
from lmms_eval_captions.lmms_eval_tasks.capquiz.benchmark import FILE
from lmms_eval_captions.lmms_eval_tasks.sample import lines
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES, Color, Scene
from lmms_eval_captions.lmms_eval_tasks.sample.wording import (
    CAMERA,
    NUMBERS,
    event,
    motion,
    position,
    with_article,
)

_MOTIONS: Final = (
    "it does not move", "it moves to the left", "it moves to the right", "it moves up",
    "it moves down",
)  # fmt: skip
_POSITIONS: Final = (
    "on the left", "on the right", "in the center", "in the upper middle", "in the lower middle",
)  # fmt: skip
_EVENTS: Final = (
    "nothing besides objects moving", "the picture gets darker", "the picture gets brighter",
    "the camera pans left", "the camera zooms in", "there is a fire",
)  # fmt: skip


def files() -> dict[str, str]:
    """Return ``capquiz/`` in the layout that the task reads."""
    rows = (
        {"video": f"{scene.video_id}.mp4", "domain": "Animation", "questions": _quiz(scene, number)}
        for number, scene in enumerate(SCENES)
    )
    return {f"capquiz/{FILE}": lines(rows)}


def _quiz(scene: Scene, number: int) -> list[dict[str, object]]:
    """Return the questions of one clip; the clip's number moves the right option."""
    shot, main, colors = scene.shots[0], scene.main, get_args(Color)
    objects = [with_article(f"{c} {s}") for c in colors[-4:] for s in ("circle", "square")]
    name, number_of = with_article(main.name), NUMBERS[len(shot.things)]
    asked: list[tuple[str, str, str, Sequence[str]]] = [
        ("Entity", "What is the main object at the start of the video?", name, objects),
        ("Attribute", "What color is the main object at the start?", main.color, colors),
        ("Setting", "What color is the background at the start?", shot.background, colors),
        ("Attribute", "How many objects are there at the start?", number_of, NUMBERS[1:]),
        ("Action", "How does the main object move in the scene?", motion(main), _MOTIONS),
        ("Action", "What does the camera do?", CAMERA[shot.camera], list(CAMERA.values())),
        ("Event", "What happens in the video?", event(scene) or _EVENTS[0], _EVENTS),
    ]
    if len(shot.things) == 1:
        question = "Where in the frame is the main object at the start?"
        asked.append(("Relational Reasoning", question, position(main.center), _POSITIONS))
    rows: list[dict[str, object]] = []
    for category, question, answer, pool in asked:
        options = [option for option in pool if option != answer][: N_OPTIONS - 1]
        options.insert((number + len(rows)) % N_OPTIONS, answer)
        rows.append(
            {"category": category, "question": question, "options": options, "answer": answer}
        )
    return rows
