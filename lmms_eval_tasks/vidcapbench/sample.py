"""VidCapBench's files for the sample: questions of both subsets, from what a scene shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmms_eval_captions.lmms_eval_tasks.sample import share_clips, write_lines
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.sample.wording import (
    CAMERA,
    NUMBERS,
    all_alike,
    event,
    motion,
    pattern,
    position,
    with_article,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lmms_eval_captions.lmms_eval_tasks.sample.scenes import Scene

Pair = dict[str, str]
"""One question in the official form."""


def write_sample(root: Path, clips: Path) -> None:
    """Write ``vidcapbench/`` in the layout that the tasks read."""
    share_clips(clips, root / "vidcapbench/videos")
    for subset, pairs in (("AE", automatic_pairs), ("HE", human_pairs)):
        rows = (
            {"video_dir": f"{scene.video_id}.mp4", "QA_pairs": pairs(scene)} for scene in SCENES
        )
        write_lines(root / "vidcapbench" / f"VidCapBench-{subset}_QA.jsonl", rows)


def automatic_pairs(scene: Scene) -> list[Pair]:
    """Pairs of all four dimensions, their answers true by construction."""
    shot, main = scene.shots[0], scene.main
    light = "it stays the same" if shot.light == "constant" else f"it gets {shot.light}"
    return [
        _pair("video aesthetics", "cinematography", "What does the camera do?", _camera(scene)),
        _pair(
            "video aesthetics", "lighting", "How does the brightness of the video change?", light
        ),
        _pair("video aesthetics", "color", "What color is the main object?", main.color),
        _pair(
            "video content",
            "subjects",
            "What is the main object at the start of the video?",
            with_article(main.name),
        ),
        _pair(
            "video content",
            "subjects",
            "How many objects are there at the start?",
            NUMBERS[len(shot.things)],
        ),
        _pair(
            "video content",
            "background",
            "What does the background look like at the start?",
            f"{shot.background} and {pattern(shot)}",
        ),
        _pair("video motion", "object motion", "How does the main object move?", motion(main)),
        *_places(scene),
    ]


def human_pairs(scene: Scene) -> list[Pair]:
    """Pairs of motion and physical laws alone, as in the official subset; some clips have none."""
    happening = event(scene)
    pairs = []
    if happening:
        question = "What changes during the video?"
        pairs.append(_pair("video motion", "attribute changes", question, happening))
    if scene.main.motion != "still":
        question = "Does the main object fall as gravity would have it?"
        answer = f"{'yes' if scene.main.motion == 'down' else 'no'}, {motion(scene.main)}"
        pairs.append(_pair("physical laws", "common sense", question, answer))
    return pairs


def _places(scene: Scene) -> list[Pair]:
    if all_alike(scene.shots[0]):
        return []  # Which of them would be meant?
    question = "Where in the frame is the main object at the start?"
    return [_pair("physical laws", "spatial relationships", question, position(scene.main.center))]


def _camera(scene: Scene) -> str:
    return CAMERA[scene.shots[0].camera].lower()


def _pair(primary: str, sub: str, question: str, answer: str) -> Pair:
    return {
        "question": question,
        "answer": answer,
        "sub_category": sub,
        "primary_category": primary,
    }
