"""English for what scenes show, shared by reference captions, questions and the baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from lmms_eval_captions.lmms_eval_tasks.sample.scenes import Camera, Light, Scene, Shot, Thing

S = TypeVar("S")

NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
CAMERA: Final[dict[Camera, str]] = {
    "static": "The camera does not move",
    "pans left": "The camera pans to the left",
    "pans right": "The camera pans to the right",
    "zooms in": "The camera zooms in",
    "zooms out": "The camera zooms out",
}
_LIGHT: Final[dict[Light, str]] = {
    "constant": "The brightness stays the same",
    "darker": "The picture gets darker",
    "brighter": "The picture gets brighter",
}


def captions(scene: Scene) -> dict[str, str]:
    """Return reference captions: one for each aspect, and ``caption``, which covers everything."""
    shots = scene.shots
    things, background = (
        " ".join(in_each_shot(shots, sentence)) for sentence in (_things, _background)
    )
    shot, cut = shots[0], "It is one continuous shot without a cut."
    if len(shots) > 1:
        cut = f"There is one cut between {NUMBERS[len(shots)]} shots."
    camera = f"{CAMERA[shot.camera]}. {cut}"
    detailed = f"{things} {background} {camera}"
    short = f"{_things(shot)[0][:-1]} on {with_article(shot.background)} background"
    return {
        "caption": detailed,
        "camera_caption": f"{camera} {_LIGHT[shot.light]}.",
        "short_caption": f"{short}, and {event(scene)}." if event(scene) else f"{short}.",
        "background_caption": background,
        "main_object_caption": things,
        "detailed_caption": detailed,
    }


def in_each_shot(shots: Sequence[S], sentences: Callable[[S], Iterable[str]]) -> list[str]:
    """Return the sentences about each shot, those after a cut marked as such."""
    texts = list(sentences(shots[0]))
    for index, shot in enumerate(shots[1:], start=1):
        cut = "After the cut" if len(shots) == 2 else f"After cut {index}"
        texts += [f"{cut}, {text[0].lower()}{text[1:]}" for text in sentences(shot)]
    return texts


def _background(shot: Shot) -> list[str]:
    text = "There is no text."
    if shot.text:
        text = f"The text {shot.text} is written at the top in white letters."
    look = f"The background is {shot.background} and {pattern(shot)}."
    return [f"{look} {_LIGHT[shot.light]}. {text}"]


def _things(shot: Shot) -> list[str]:
    if all_alike(shot):
        number = NUMBERS[len(shot.things)].capitalize()
        return [f"{number} {shot.things[0].name}s are shown without moving."]
    clauses = " and ".join(_clause(thing) for thing in shot.things)
    return [f"{clauses[0].upper()}{clauses[1:]}."]


def _clause(thing: Thing) -> str:
    name, place = with_article(thing.name), position(thing.center)
    if thing.motion == "still":
        return f"{name} {place} does not move"
    return f"{name} {motion(thing).removeprefix('it ')} from its place {place}"


def facts(scene: Scene) -> dict[str, str]:
    """Return facts about a clip's first shot and its cut, as answers to questions.

    ``position`` is missing if several objects look alike, ``other`` without another object,
    ``after the cut`` without a cut.
    """
    shot, main, n_shots = scene.shots[0], scene.main, len(scene.shots)
    last = scene.shots[-1]
    n_things, camera, cut = NUMBERS[len(shot.things)], shot.camera, n_shots > 1
    known = {
        "main": f"{n_things} {main.name}s" if all_alike(shot) else with_article(main.name),
        "color": main.color,
        "shape": main.shape,
        "motion": motion(main),
        "number": n_things,
        "background": shot.background,
        "pattern": pattern(shot),
        "text": shot.text or "there is no text",
        "light": "it stays the same" if shot.light == "constant" else f"it gets {shot.light}",
        "camera": CAMERA[camera].lower(),
        "zoom": f"yes, {camera.removeprefix('zooms ')}" if "zooms" in camera else "no",
        "pan": f"yes, to the {camera.removeprefix('pans ')}" if "pans" in camera else "no",
        "cut": "yes" if cut else "no",
        "shots": NUMBERS[n_shots],
        "event": event(scene) or "nothing",
        "new background": f"yes, it becomes {last.background}" if cut else "no",
    }
    if not all_alike(shot):
        known["position"] = position(main.center)
    if others := [thing.name for thing in shot.things if thing.name != main.name]:
        known["other"] = with_article(others[0])
    if cut:
        known["after the cut"] = with_article(last.things[0].name)
    return known


def all_alike(shot: Shot) -> bool:
    """Return if a shot shows several things of one colour and shape."""
    return len(shot.things) > 1 and len({thing.name for thing in shot.things}) == 1


def position(center: tuple[float, float]) -> str:
    """Return the area of the frame that a point is in, given as shares from the upper left.

    >>> position((0.2, 0.8))
    'in the lower left'
    """
    x, y = center
    across = "left" if x < 0.4 else "right" if x > 0.6 else ""
    along = "upper" if y < 0.4 else "lower" if y > 0.6 else ""
    if along:
        return f"in the {along} {across or 'middle'}"
    return f"on the {across}" if across else "in the center"


def motion(thing: Thing) -> str:
    """Return a thing's motion in the scene, such as ``it moves to the left``."""
    if thing.motion == "still":
        return "it does not move"
    return f"it moves {'to the ' if thing.motion in ('left', 'right') else ''}{thing.motion}"


def pattern(shot: Shot) -> str:
    """Return the look of a background besides its colour."""
    return "plain" if shot.pattern == "plain" else "patterned with darker dots"


def event(scene: Scene) -> str:
    """Return what happens besides objects moving, as a clause, or nothing."""
    shot = scene.shots[0]
    if len(scene.shots) > 1:
        last = scene.shots[-1]
        thing = with_article(last.things[0].name)
        return f"there is a cut to {thing} on {with_article(last.background)} background"
    if shot.light != "constant":
        return f"the picture gets {shot.light}"
    return "" if shot.camera == "static" else f"the camera {shot.camera}"


def events(scene: Scene) -> list[str]:
    """Return the events of a clip: what each object does, and what else happens."""
    things = [
        f"{with_article(thing.name)} {motion(thing).removeprefix('it ')}"
        for thing in scene.shots[0].things
    ]
    return list(dict.fromkeys([*things, *filter(None, [event(scene)])]))


def with_article(noun: str) -> str:
    """Return a noun behind its indefinite article, such as ``an orange square``."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
