"""What a scene shows, in the words that the sample's questions and captions share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmms_eval_captions.lmms_eval_tasks.sample.scenes import Camera, Scene, Shot, Thing

NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
CAMERA: dict[Camera, str] = {
    "static": "The camera does not move",
    "pans left": "The camera pans to the left",
    "pans right": "The camera pans to the right",
    "zooms in": "The camera zooms in",
    "zooms out": "The camera zooms out",
}


def all_alike(shot: Shot) -> bool:
    """Whether a shot shows several things of one colour and shape."""
    return len(shot.things) > 1 and len({thing.name for thing in shot.things}) == 1


def position(thing: Thing) -> str:
    """Where a thing is at the start, in words such as ``on the left`` or ``in the center``.

    >>> from lmms_eval_captions.lmms_eval_tasks.sample.scenes import Thing
    >>> position(Thing("red", "circle", center=(0.2, 0.8)))
    'in the lower left'
    """
    x, y = thing.center
    across = "left" if x < 0.4 else "right" if x > 0.6 else ""
    along = "upper" if y < 0.4 else "lower" if y > 0.6 else ""
    if across and along:
        return f"in the {along} {across}"
    if along:
        return f"in the {along} middle"
    return f"on the {across}" if across else "in the center"


def motion(thing: Thing) -> str:
    """How a thing moves in the scene, such as ``it moves to the left``."""
    if thing.motion == "still":
        return "it does not move"
    return f"it moves {'to the ' if thing.motion in ('left', 'right') else ''}{thing.motion}"


def pattern(shot: Shot) -> str:
    """The look of a background besides its colour."""
    return "plain" if shot.pattern == "plain" else "patterned with darker dots"


def event(scene: Scene) -> str:
    """What happens besides objects moving, as a clause, or nothing."""
    shot = scene.shots[0]
    if len(scene.shots) > 1:
        background = with_article(scene.shots[-1].background)
        thing = with_article(last_thing(scene).name)
        return f"there is a cut to {thing} on {background} background"
    if shot.light != "constant":
        return f"the picture gets {shot.light}"
    return "" if shot.camera == "static" else f"the camera {shot.camera}"


def last_thing(scene: Scene) -> Thing:
    """The main object of the last shot."""
    return scene.shots[-1].things[0]


def with_article(noun: str) -> str:
    """A noun behind its indefinite article, such as ``an orange square``."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
