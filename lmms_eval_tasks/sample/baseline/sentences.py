"""Plain English for what was measured in a clip; what was not measured is not mentioned."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from lmms_eval_captions.lmms_eval_tasks.sample.baseline.camera import CameraMove
    from lmms_eval_captions.lmms_eval_tasks.sample.baseline.light import Light
    from lmms_eval_captions.lmms_eval_tasks.sample.baseline.reading import (
        Observations,
        SeenObject,
        SeenShot,
    )

Focus = Literal["all", "short", "camera", "background", "objects"]
"""Subject that a caption begins with; ``short`` leaves out the rest."""

_DENSE_S = 0.4
"""Seconds between frames up to which no shot is taken to have been missed."""
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
_CAMERA: dict[CameraMove, str] = {
    "none": "The camera does not appear to move.",
    "pans left": "The camera pans to the left.",
    "pans right": "The camera pans to the right.",
    "tilts up": "The camera tilts up.",
    "tilts down": "The camera tilts down.",
    "zooms in": "The camera zooms in.",
    "zooms out": "The camera zooms out.",
    "shakes": "The camera shakes.",
}
_LIGHT: dict[Light, str] = {
    "constant": "The brightness stays about the same.",
    "darker": "The picture gets darker.",
    "brighter": "The picture gets brighter.",
    "flashes": "The brightness jumps for a moment and back.",
    "flickers": "The picture flickers between bright and dark.",
}


def focus_of(prompt: str) -> Focus:
    """Return the subject that a caption prompt asks for, by its words.

    >>> focus_of("Describe any camera zooms, pans, or angle changes.")
    'camera'
    >>> focus_of("Describe the video in detail: camera, background and main subject.")
    'all'
    """
    text = prompt.lower()
    words: dict[Focus, tuple[str, ...]] = {
        "camera": ("camera",),
        "background": ("background",),
        "objects": ("main object", "main subject", "subject"),
        "short": ("short", "brief", "one sentence", "one-sentence"),
    }
    asked = [focus for focus, keys in words.items() if any(key in text for key in keys)]
    return asked[0] if len(asked) == 1 else "all"


def describe(observations: Observations, focus: Focus = "all") -> str:
    """A caption of one clip.

    Args:
        observations: What was measured.
        focus: What the caption speaks of first.

    Returns:
        One to about ten sentences.
    """
    shots = observations.shots
    objects = _per_shot(shots, _objects_sentences)
    background = _per_shot(shots, _background_sentences)
    if focus == "short":
        return " ".join([*_objects_sentences(shots[0]), *_background_sentences(shots[0])[:1]])
    camera = [*_camera_sentences(observations), *_per_shot(shots, _light_sentences)]
    order = {
        "camera": [camera, objects, background],
        "background": [background, objects, camera],
    }.get(focus, [objects, background, camera])
    return " ".join(sentence for part in order for sentence in part)


def _per_shot(shots: tuple[SeenShot, ...], sentences: Callable[[SeenShot], list[str]]) -> list[str]:
    spoken: list[str] = []
    for index, shot in enumerate(shots):
        if index == 0:
            spoken += sentences(shot)
            continue
        cut = "After the cut" if len(shots) == 2 else f"After cut {index}"
        spoken += [f"{cut}, {text[0].lower()}{text[1:]}" for text in sentences(shot)]
    return spoken


def _camera_sentences(observations: Observations) -> list[str]:
    shots = observations.shots
    n_cuts = len(shots) - 1
    sentences = _per_shot(shots, lambda shot: [_CAMERA[shot.camera]] if shot.camera else [])
    if n_cuts:
        number = _number(n_cuts)
        verb, noun = ("is", "cut") if n_cuts == 1 else ("are", "cuts")
        # Frames far apart may have missed a shot.
        at_least = "at least " if observations.duration_s > _DENSE_S * observations.n_frames else ""
        shots_text = f"{_number(n_cuts + 1)} shots"
        sentences.append(f"There {verb} {at_least}{number} {noun} between {shots_text}.")
    elif observations.n_frames > 1:
        sentences.append("It appears to be one continuous shot without a cut.")
    return sentences


def _light_sentences(shot: SeenShot) -> list[str]:
    return [_LIGHT[shot.light]] if shot.light else []


def _background_sentences(shot: SeenShot) -> list[str]:
    if shot.background is None:
        tones = " and ".join(shot.colors[:3])
        return [f"The picture is mostly {tones}."] if tones else []
    pattern = " with many small marks on it" if shot.is_patterned else ""
    sentences = [f"The background is mostly {shot.background}{pattern}."]
    if shot.has_letters:
        sentences.append("Something that may be a line of text is shown.")
    return sentences


def _objects_sentences(shot: SeenShot) -> list[str]:
    if shot.is_cluttered:
        return ["Many separate parts are visible."]
    groups = Counter((thing.color, thing.shape, thing.motion) for thing in shot.objects)
    sentences = []
    for (color, shape, motion), number in groups.items():
        first = next(
            thing
            for thing in shot.objects
            if (thing.color, thing.shape, thing.motion) == (color, shape, motion)
        )
        sentences.append(_object_sentence(first, number))
    if len(groups) > 1:
        sentences.append(f"{_number(len(shot.objects)).capitalize()} objects stand out.")
    return sentences


def _object_sentence(thing: SeenObject, number: int) -> str:
    noun = f"{thing.color} {thing.shape or 'area of no plain shape'}"
    if number == 1:
        subject = f"{'An' if noun[0] in 'aeiou' else 'A'} {noun} {_position(thing)}"
    else:
        plural = noun.replace("area", "areas") if thing.shape is None else f"{noun}s"
        subject = f"{_number(number).capitalize()} {plural}"
    is_one = number == 1
    if thing.motion is None:
        return f"{subject} {'is' if is_one else 'are'} visible."
    if thing.motion == "still":
        return f"{subject} {'does' if is_one else 'do'} not move."
    way = f"to the {thing.motion}" if thing.motion in ("left", "right") else thing.motion
    return f"{subject} {'moves' if is_one else 'move'} {way}."


def _position(thing: SeenObject) -> str:
    x, y = thing.position
    across = "left" if x < 0.4 else "right" if x > 0.6 else ""
    along = "upper" if y < 0.4 else "lower" if y > 0.6 else ""
    if across and along:
        return f"in the {along} {across}"
    if along:
        return f"in the {along} middle"
    return f"on the {across}" if across else "in the center"


def _number(value: int) -> str:
    return _NUMBERS[value] if value < len(_NUMBERS) else str(value)
