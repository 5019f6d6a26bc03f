"""VidCapBench's files for the sample: questions of both subsets, from what a scene shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.sample import lines
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES, Scene
from lmms_eval_captions.lmms_eval_tasks.sample.wording import facts, with_article
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import QUESTIONS, Pair

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


def files() -> dict[str, str]:
    """Return ``vidcapbench/`` in the layout that the tasks read."""
    return {
        f"vidcapbench/{QUESTIONS.format(subset=subset)}": lines(
            {"video_dir": f"{scene.video_id}.mp4", "QA_pairs": [*map(_pair, pairs(scene))]}
            for scene in SCENES
        )
        for subset, pairs in (("AE", _automatic_pairs), ("HE", _human_pairs))
    }


def _automatic_pairs(scene: Scene) -> Iterator[Sequence[str]]:
    known = facts(scene)
    known["one"] = with_article(scene.main.name)
    known["look"] = f"{known['background']} and {known['pattern']}"
    for *asked, fact in _AUTOMATIC:
        if fact in known:
            yield *asked, known[fact]


def _human_pairs(scene: Scene) -> Iterator[Sequence[str]]:
    """Yield pairs of motion and physical laws only, as in the official subset, maybe none."""
    known = facts(scene)
    if known["event"] != "nothing":
        question = "What changes during the video?"
        yield "video motion", "attribute changes", question, known["event"]
    if scene.main.motion != "still":
        question = "Does the main object fall as gravity would have it?"
        answer = f"{'yes' if scene.main.motion == 'down' else 'no'}, {known['motion']}"
        yield "physical laws", "common sense", question, answer


def _pair(pair: Sequence[str]) -> Pair:
    dimension, category, question, answer = pair
    return {
        "question": question,
        "answer": answer,
        "sub_category": category,
        "primary_category": dimension,
    }
