"""Files of multiple-choice questions for the sample, derived from what a scene shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import get_args

from lmms_eval_captions.lmms_eval_tasks.caption_qa.benchmark import (
    CUSTOM,
    DAILY_OMNI,
    LMMS_EVAL_SETS,
)
from lmms_eval_captions.lmms_eval_tasks.sample import lines
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES, Color, Scene
from lmms_eval_captions.lmms_eval_tasks.sample.wording import CAMERA


def files() -> dict[str, str]:
    """Return ``caption_qa/``: the same questions in Daily-Omni's layout and in ours."""
    videos, rows = [], []
    for number, scene in enumerate(SCENES):
        quiz = []
        for kind, question, options, answer in _questions(scene, number):
            choices = [f"{letter}. {text}" for letter, text in zip("ABCD", options, strict=True)]
            letter = "ABCD"[options.index(answer)]
            quiz.append({"Question": question, "Choice": choices, "Answer": letter, "Type": kind})
            row = {"video": scene.video_id, "question": question, "options": options}
            rows.append({**row, "answer": answer, "category": kind})
        video = {"video_id": scene.video_id, "video_category": "Animation", "questions": quiz}
        videos.append(video)
    ours = (CUSTOM, *(f"{name}.jsonl" for name in LMMS_EVAL_SETS))
    texts = {DAILY_OMNI: json.dumps(videos, indent=1), **dict.fromkeys(ours, lines(rows))}
    return {f"caption_qa/{name}": text for name, text in texts.items()}


def _questions(scene: Scene, number: int) -> Iterator[tuple[str, str, list[str], str]]:
    """Yield type, question, four options and answer; the answer's index follows the number."""
    shot, main = scene.shots[0], scene.main
    asked = (
        ("Attribute", "What color is the main object?", main.color, list(get_args(Color))),
        ("Setting", "What color is the background?", shot.background, list(get_args(Color))),
        ("Camera", "What does the camera do?", CAMERA[shot.camera], list(CAMERA.values())),
    )
    for kind, question, answer, pool in asked:
        options = [option for option in pool if option != answer][:3]
        options.insert(number % 4, answer)
        yield kind, question, options, answer
