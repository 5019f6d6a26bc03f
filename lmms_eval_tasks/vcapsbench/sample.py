"""VCapsBench's file for the sample: yes-no questions, derived from what a scene shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lmms_eval_captions.lmms_eval_tasks.sample import share_clips, write_lines
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import RGB, SCENES, Scene
from lmms_eval_captions.lmms_eval_tasks.sample.wording import (
    CAMERA,
    NUMBERS,
    motion,
    position,
    with_article,
)


def write_sample(root: Path, clips: Path) -> None:
    """Write ``vcapsbench/`` in the official layout; video ids carry their ending there."""
    share_clips(clips, root / "vcapsbench/videos5k")
    rows = ({"video_id": f"{scene.video_id}.mp4", "qa": qa(scene)} for scene in SCENES)
    write_lines(root / "vcapsbench" / "VCapsBench_100KQA.jsonl", rows)


def qa(scene: Scene) -> list[str]:
    """The questions of one clip as ``category*question*answer``, true by construction."""
    return [f"{category}*{question}*{answer}" for category, question, answer in _facts(scene)]


def _facts(scene: Scene) -> Iterator[tuple[str, str, str]]:
    shot, main = scene.shots[0], scene.main
    n_things = len(shot.things)
    other_shape = "square" if main.shape != "square" else "triangle"
    other_color = next(color for color in RGB if color not in (main.color, shot.background))
    yield "entity", f"Is there {with_article(main.shape)} at the start of the video?", "yes"
    yield "entity shape", f"Is the {main.color} object a {other_shape}?", "no"
    yield "color", f"Is the {main.shape} {main.color}?", "yes"
    yield "color", f"Is the {main.shape} {other_color}?", "no"
    yield "count", f"Are there more than {NUMBERS[n_things]} objects at the start?", "no"
    yield "background", f"Is the background {shot.background}?", "yes"
    yield "lighting", "Does the brightness stay the same?", _yes(shot.light == "constant")
    yield "camera movement", f"{_asked(CAMERA[shot.camera])}?", "yes"
    if n_things == 1:
        moves = motion(main).removeprefix("it ")
        yield "action", f"Is it right that the {main.shape} {moves} in the scene?", "yes"
        yield "position", f"Is the {main.shape} {position(main.center)} at the start?", "yes"
    if shot.text:
        yield "text", f'Does the video show the text "{shot.text}*"?', "no"
        yield "text", f'Does the video show the text "{shot.text}"?', "yes"


def _asked(sentence: str) -> str:
    """A statement about the camera as a question.

    >>> _asked("The camera zooms in")
    'Is it right that the camera zooms in'
    """
    return f"Is it right that {sentence[0].lower()}{sentence[1:]}"


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"
