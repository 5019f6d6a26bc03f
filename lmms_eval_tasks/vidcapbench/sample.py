"""VidCapBench's files for the sample: questions of both subsets, from what a scene shows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.sample import share_clips, write_lines
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES, Scene
from lmms_eval_captions.lmms_eval_tasks.sample.wording import facts, with_article
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import Pair

_AUTOMATIC: Final = (
    ("video aesthetics", "cinematography", "What does the camera do?", "camera"),
    ("video aesthetics", "lighting", "How does the brightness of the video change?", "light"),
    ("video aesthetics", "color", "What color is the main object?", "color"),
    ("video content", "subjects", "What is the main object at the start of the video?", "one"),
    ("video content", "subjects", "How many objects are there at the start?", "number"),
    ("video content", "background", "What does the background look like at the start?", "look"),
    ("video motion", "object motion", "How does the main object move?", "motion"),
    (
        "physical laws",
        "spatial relationships",
        "Where in the frame is the main object at the start?",
        "position",
    ),
)
"""Dimension, subcategory, question, and the fact that answers it."""


def write_sample(root: Path, clips: Path) -> None:
    """Write ``vidcapbench/`` in the layout that the tasks read."""
    share_clips(clips, root / "vidcapbench/videos")
    for subset, pairs in (("AE", _automatic_pairs), ("HE", _human_pairs)):
        rows = (
            {"video_dir": f"{scene.video_id}.mp4", "QA_pairs": pairs(scene)} for scene in SCENES
        )
        write_lines(root / "vidcapbench" / f"VidCapBench-{subset}_QA.jsonl", rows)


def _automatic_pairs(scene: Scene) -> list[Pair]:
    known = facts(scene)
    known["one"] = with_article(scene.main.name)
    known["look"] = f"{known['background']} and {known['pattern']}"
    return [
        _pair(dimension, category, question, known[fact])
        for dimension, category, question, fact in _AUTOMATIC
        if fact in known
    ]


def _human_pairs(scene: Scene) -> list[Pair]:
    """Return pairs of motion and physical laws only, as in the official subset, maybe none."""
    known, pairs = facts(scene), []
    if known["event"] != "nothing":
        question = "What changes during the video?"
        pairs.append(_pair("video motion", "attribute changes", question, known["event"]))
    if scene.main.motion != "still":
        question = "Does the main object fall as gravity would have it?"
        answer = f"{'yes' if scene.main.motion == 'down' else 'no'}, {known['motion']}"
        pairs.append(_pair("physical laws", "common sense", question, answer))
    return pairs


def _pair(dimension: str, category: str, question: str, answer: str) -> Pair:
    return {
        "question": question,
        "answer": answer,
        "sub_category": category,
        "primary_category": dimension,
    }
