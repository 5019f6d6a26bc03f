"""Reference captions, derived from what a scene shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmms_eval_captions.lmms_eval_tasks.sample.sentences import (
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
    from collections.abc import Callable, Iterable, Iterator

    from lmms_eval_captions.lmms_eval_tasks.sample.scenes import Light, Scene, Shot, Thing

_LIGHT: dict[Light, str] = {
    "constant": "The brightness stays the same",
    "darker": "The picture gets darker",
    "brighter": "The picture gets brighter",
}


def captions(scene: Scene) -> dict[str, str]:
    """Reference captions: one for each aspect, and ``caption``, which says everything."""
    camera = _camera_caption(scene)
    background = _join(_per_shot(scene, _background_sentence))
    things = _join(_per_shot(scene, _things_sentence))
    detailed = _join([things, background, _camera_movement(scene)])
    return {
        "caption": detailed,
        "camera_caption": camera,
        "short_caption": _short_caption(scene),
        "background_caption": background,
        "main_object_caption": things,
        "detailed_caption": detailed,
    }


def _camera_caption(scene: Scene) -> str:
    return f"{_camera_movement(scene)} {_LIGHT[scene.shots[0].light]}."


def _camera_movement(scene: Scene) -> str:
    camera, n_cuts = CAMERA[scene.shots[0].camera], len(scene.shots) - 1
    if not n_cuts:
        return f"{camera}. It is one continuous shot without a cut."
    return f"{camera}. There is {NUMBERS[n_cuts]} cut between {NUMBERS[n_cuts + 1]} shots."


def _short_caption(scene: Scene) -> str:
    shot = scene.shots[0]
    caption = f"{_things_sentence(shot)[:-1]} on {with_article(shot.background)} background"
    return f"{caption}, and {event(scene)}." if event(scene) else f"{caption}."


def _per_shot(scene: Scene, sentence: Callable[[Shot], str]) -> Iterator[str]:
    yield sentence(scene.shots[0])
    for shot in scene.shots[1:]:
        text = sentence(shot)
        yield f"After the cut, {text[0].lower()}{text[1:]}"


def _background_sentence(shot: Shot) -> str:
    sentence = f"The background is {shot.background} and {pattern(shot)}"
    if shot.text:
        written = f"The text {shot.text} is written at the top in {shot.text_color} letters."
    else:
        written = "There is no text."
    return f"{sentence}. {_LIGHT[shot.light]}. {written}"


def _things_sentence(shot: Shot) -> str:
    first = shot.things[0]
    if all_alike(shot):
        return f"{NUMBERS[len(shot.things)].capitalize()} {first.name}s are shown without moving."
    clauses = " and ".join(_thing_clause(thing) for thing in shot.things)
    return f"{clauses[0].upper()}{clauses[1:]}."


def _thing_clause(thing: Thing) -> str:
    if thing.motion == "still":
        return f"{with_article(thing.name)} {position(thing)} does not move"
    moves = motion(thing).removeprefix("it ")
    return f"{with_article(thing.name)} {moves} from its place {position(thing)}"


def _join(sentences: Iterable[str]) -> str:
    return " ".join(sentences)
