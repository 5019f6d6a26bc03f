"""VCapsBench's file for the sample: yes-no questions, derived from what a scene shows."""

from __future__ import annotations

from collections.abc import Iterator

from lmms_eval_captions.lmms_eval_tasks.sample import lines
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import RGB, SCENES, Scene
from lmms_eval_captions.lmms_eval_tasks.sample.wording import (
    CAMERA,
    NUMBERS,
    motion,
    position,
    with_article,
)
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.benchmark import FILE


def files() -> dict[str, str]:
    """Return ``vcapsbench/`` in the official layout; video ids carry their ending there."""
    rows = (
        {"video_id": f"{scene.video_id}.mp4", "qa": ["*".join(fact) for fact in _facts(scene)]}
        for scene in SCENES
    )
    return {f"vcapsbench/{FILE}": lines(rows)}


def _facts(scene: Scene) -> Iterator[tuple[str, str, str]]:
    """Yield category, question and answer, true by construction."""
    shot, main = scene.shots[0], scene.main
    n_things, is_steady = len(shot.things), shot.light == "constant"
    camera = CAMERA[shot.camera].replace("The", "the")
    other_shape = "square" if main.shape != "square" else "triangle"
    other_color = next(color for color in RGB if color not in (main.color, shot.background))
    yield "entity", f"Is there {with_article(main.shape)} at the start of the video?", "yes"
    yield "entity shape", f"Is the {main.color} object a {other_shape}?", "no"
    yield "color", f"Is the {main.shape} {main.color}?", "yes"
    yield "color", f"Is the {main.shape} {other_color}?", "no"
    yield "count", f"Are there more than {NUMBERS[n_things]} objects at the start?", "no"
    yield "background", f"Is the background {shot.background}?", "yes"
    yield "lighting", "Does the brightness stay the same?", "yes" if is_steady else "no"
    yield "camera movement", f"Is it right that {camera}?", "yes"
    if n_things == 1:
        moves = motion(main).removeprefix("it ")
        yield "action", f"Is it right that the {main.shape} {moves} in the scene?", "yes"
        yield "position", f"Is the {main.shape} {position(main.center)} at the start?", "yes"
    if shot.text:
        yield "text", f'Does the video show the text "{shot.text}*"?', "no"
        yield "text", f'Does the video show the text "{shot.text}"?', "yes"
