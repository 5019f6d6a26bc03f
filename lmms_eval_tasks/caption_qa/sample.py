"""Files of multiple-choice questions for the sample, derived from what a scene shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, get_args

from lmms_eval_captions.lmms_eval_tasks.caption_qa.data import CUSTOM, LMMS_EVAL_SETS
from lmms_eval_captions.lmms_eval_tasks.sample import share_clips, write_lines
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES, Color
from lmms_eval_captions.lmms_eval_tasks.sample.wording import CAMERA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lmms_eval_captions.lmms_eval_tasks.sample.scenes import Scene


def write_sample(root: Path, clips: Path) -> None:
    """Write ``caption_qa/``: the same questions in Daily-Omni's layout and in ours."""
    share_clips(clips, root / "caption_qa/videos")
    rows, lines = [], []
    for number, scene in enumerate(SCENES):
        asked = list(_questions(scene, number))
        rows.append(
            {
                "video_id": scene.video_id,
                "video_category": "Animation",
                "questions": [
                    {
                        "Question": question,
                        "Choice": [f"{'ABCD'[i]}. {text}" for i, text in enumerate(options)],
                        "Answer": "ABCD"[options.index(answer)],
                        "Type": kind,
                    }
                    for kind, question, options, answer in asked
                ],
            }
        )
        lines += [
            {
                "video": scene.video_id,
                "question": question,
                "options": options,
                "answer": answer,
                "category": kind,
            }
            for kind, question, options, answer in asked
        ]
    folder = root / "caption_qa" / "daily_omni"
    folder.mkdir(parents=True)
    text = json.dumps(rows, indent=1)
    (folder / "grouped_data.json").write_text(text, encoding="utf-8", newline="\n")
    for file in (CUSTOM, *(f"{name}.jsonl" for name in LMMS_EVAL_SETS)):
        write_lines(root / "caption_qa" / file, lines)


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
