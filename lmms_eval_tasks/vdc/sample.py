"""VDC's files for the sample: questions of each aspect, derived from what a scene shows."""

from __future__ import annotations

from typing import Final

from lmms_eval_captions.lmms_eval_tasks.sample import lines
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES, Scene
from lmms_eval_captions.lmms_eval_tasks.sample.wording import captions, facts
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import QUESTIONS, REFERENCES, Pair

_MAIN: Final = "What is the main object at the start of the video?"
_MOTION: Final = ("action", "How does the main object move in the scene?", "motion")
_POSITION: Final = ("location", "Where in the frame is the main object at the start?", "position")
_BACKGROUND: Final = ("background", "What color is the background at the start?", "background")
_PATTERN: Final = ("texture", "Is the background plain or patterned?", "pattern")
_EVENT: Final = ("change", "What happens besides objects moving?", "event")
_NUMBER: Final = ("number", "How many objects are there at the start?", "number")
_QUESTIONS: Final = {
    "camera": (
        ("camera movement", "What does the camera do?", "camera"),
        ("zoom", "Does the camera zoom, and in which direction?", "zoom"),
        ("pan", "Does the camera pan, and in which direction?", "pan"),
        ("transitions", "Is there a cut in the video?", "cut"),
        ("transitions", "How many shots does the video consist of?", "shots"),
        ("lighting", "How does the brightness change during the video?", "light"),
    ),
    "short": (
        ("object", _MAIN, "main"),
        _MOTION,
        ("number", "How many objects are shown at the start?", "number"),
        _BACKGROUND,
        _EVENT,
    ),
    "background": (
        ("color", "What color is the background at the start of the video?", "background"),
        _PATTERN,
        ("text", "What text is written on the background?", "text"),
        ("lighting", "How does the brightness of the scene change?", "light"),
        ("change", "Is the background replaced by another one?", "new background"),
    ),
    "main_object": (
        ("color", "What color is the main object at the start of the video?", "color"),
        ("shape", "What shape is the main object at the start of the video?", "shape"),
        _MOTION,
        _POSITION,
        _NUMBER,
        ("object", "What other object is shown?", "other"),
        ("object", "What appears after the cut?", "after the cut"),
    ),
    "detailed": (
        ("object", _MAIN, "main"),
        _NUMBER,
        _MOTION,
        _POSITION,
        _BACKGROUND,
        _PATTERN,
        ("camera", "What does the camera do?", "camera"),
        _EVENT,
    ),
}
"""Aspect to category, question, and the fact that answers it, see :func:`facts`."""


def files() -> dict[str, str]:
    """Return ``vdc/`` in the official layout, and reference captions next to it."""
    texts = {
        f"vdc/{QUESTIONS.format(aspect=aspect)}": lines(
            {scene.video_id: questions(scene, aspect)} for scene in SCENES
        )
        for aspect in _QUESTIONS
    }
    rows = [{"video_id": scene.video_id, **captions(scene)} for scene in SCENES]
    texts["vdc/captions.jsonl"] = lines(rows)
    aspects = [{name: text for name, text in row.items() if name != "caption"} for row in rows]
    named = ({"video_id": "", "video_name": f"{row['video_id']}.mp4"} | row for row in aspects)
    return {**texts, f"vdc/{REFERENCES}": lines(named)}


def questions(scene: Scene, aspect: str) -> list[Pair]:
    """Return the four to eight questions of a clip about an aspect, in the official form."""
    known = facts(scene)
    return [
        {"question": question, "answer": known[fact], "category": category}
        for category, question, fact in _QUESTIONS[aspect]
        if fact in known
    ]
