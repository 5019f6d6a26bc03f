"""VDC's files for the sample: questions of each aspect, derived from what a scene shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lmms_eval_captions.lmms_eval_tasks.sample import share_clips, write_lines
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.sample.wording import (
    CAMERA,
    NUMBERS,
    all_alike,
    captions,
    event,
    motion,
    pattern,
    position,
    with_article,
)
from lmms_eval_captions.lmms_eval_tasks.vdc.data import REFERENCES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from lmms_eval_captions.lmms_eval_tasks.sample.scenes import Camera, Light, Scene

Pair = dict[str, str]
"""One question in the official form: ``question``, ``answer`` and ``category``."""


def write_sample(root: Path, clips: Path) -> None:
    """Write ``vdc/`` in the official layout, and reference captions beside it."""
    share_clips(clips, root / "vdc" / "videos")
    folder = root / "vdc" / "VDCScore_qa"
    folder.mkdir()
    for aspect, questions in QUESTIONS.items():
        rows = ({scene.video_id: questions(scene)} for scene in SCENES)
        write_lines(folder / f"{aspect}.jsonl", rows)
    references = [{"video_id": scene.video_id, **captions(scene)} for scene in SCENES]
    write_lines(root / "vdc" / "captions.jsonl", references)
    write_lines(root / "vdc" / REFERENCES, map(_reference_row, references))


def _reference_row(row: Mapping[str, str]) -> dict[str, str]:
    """The reference captions of one clip in the official form."""
    of_aspects = {f"{aspect}_caption": row[f"{aspect}_caption"] for aspect in QUESTIONS}
    name = row["video_id"]
    return {"video_id": name, "video_name": f"{name}.mp4", **of_aspects}


def _pair(category: str, question: str, answer: str) -> Pair:
    return {"question": question, "answer": answer, "category": category}


def _camera_questions(scene: Scene) -> list[Pair]:
    shot, n_shots = scene.shots[0], len(scene.shots)
    return [
        _pair("camera movement", "What does the camera do?", CAMERA[shot.camera].lower()),
        _pair("zoom", "Does the camera zoom, and in which direction?", _zoom(shot.camera)),
        _pair("pan", "Does the camera pan, and in which direction?", _pan(shot.camera)),
        _pair("transitions", "Is there a cut in the video?", "yes" if n_shots > 1 else "no"),
        _pair("transitions", "How many shots does the video consist of?", NUMBERS[n_shots]),
        _pair("lighting", "How does the brightness change during the video?", _light(shot.light)),
    ]


def _short_questions(scene: Scene) -> list[Pair]:
    shot, main = scene.shots[0], scene.main
    return [
        _pair("object", "What is the main object at the start of the video?", _main(scene)),
        _pair("action", "How does the main object move in the scene?", motion(main)),
        _pair("number", "How many objects are shown at the start?", NUMBERS[len(shot.things)]),
        _pair("background", "What color is the background at the start?", shot.background),
        _pair("change", "What happens besides objects moving?", event(scene) or "nothing"),
    ]


def _background_questions(scene: Scene) -> list[Pair]:
    shot = scene.shots[0]
    rows = [
        _pair("color", "What color is the background at the start of the video?", shot.background),
        _pair("texture", "Is the background plain or patterned?", pattern(shot)),
        _pair("text", "What text is written on the background?", shot.text or "there is no text"),
        _pair("lighting", "How does the brightness of the scene change?", _light(shot.light)),
    ]
    later = scene.shots[1:]
    changed = f"yes, it becomes {later[-1].background}" if later else "no"
    rows.append(_pair("change", "Is the background replaced by another one?", changed))
    return rows


def _main_object_questions(scene: Scene) -> list[Pair]:
    main, n_things = scene.main, len(scene.shots[0].things)
    rows = [
        _pair("color", "What color is the main object at the start of the video?", main.color),
        _pair("shape", "What shape is the main object at the start of the video?", main.shape),
        _pair("action", "How does the main object move in the scene?", motion(main)),
        *_location_questions(scene),
        _pair("number", "How many objects are there at the start?", NUMBERS[n_things]),
    ]
    others = [thing for thing in scene.shots[0].things if thing.name != main.name]
    rows += [
        _pair("object", "What other object is shown?", with_article(thing.name)) for thing in others
    ]
    if len(scene.shots) > 1:
        rows.append(
            _pair(
                "object",
                "What appears after the cut?",
                with_article(scene.shots[-1].things[0].name),
            )
        )
    return rows


def _detailed_questions(scene: Scene) -> list[Pair]:
    shot, main = scene.shots[0], scene.main
    return [
        _pair("object", "What is the main object at the start of the video?", _main(scene)),
        _pair("number", "How many objects are there at the start?", NUMBERS[len(shot.things)]),
        _pair("action", "How does the main object move in the scene?", motion(main)),
        *_location_questions(scene),
        _pair("background", "What color is the background at the start?", shot.background),
        _pair("texture", "Is the background plain or patterned?", pattern(shot)),
        _pair("camera", "What does the camera do?", CAMERA[shot.camera].lower()),
        _pair("change", "What happens besides objects moving?", event(scene) or "nothing"),
    ]


def _location_questions(scene: Scene) -> list[Pair]:
    if all_alike(scene.shots[0]):
        return []  # Which of them would be meant?
    where = position(scene.main.center)
    return [_pair("location", "Where in the frame is the main object at the start?", where)]


def _main(scene: Scene) -> str:
    if all_alike(scene.shots[0]):
        return f"{NUMBERS[len(scene.shots[0].things)]} {scene.main.name}s"
    return with_article(scene.main.name)


def _zoom(camera: Camera) -> str:
    return {"zooms in": "yes, in", "zooms out": "yes, out"}.get(camera, "no")


def _pan(camera: Camera) -> str:
    return {"pans left": "yes, to the left", "pans right": "yes, to the right"}.get(camera, "no")


def _light(light: Light) -> str:
    return "it stays the same" if light == "constant" else f"it gets {light}"


QUESTIONS: Final[Mapping[str, Callable[[Scene], list[Pair]]]] = {
    "camera": _camera_questions,
    "short": _short_questions,
    "background": _background_questions,
    "main_object": _main_object_questions,
    "detailed": _detailed_questions,
}
"""Aspect to the four to eight questions of a clip about it, their answers true by construction."""
