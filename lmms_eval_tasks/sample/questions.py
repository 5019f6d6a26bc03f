"""Questions with their answers, derived from what a scene shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from lmms_eval_captions.lmms_eval_tasks.sample.scenes import Camera, Light, Scene, Shot, Thing

Aspect = Literal["camera", "short", "background", "main_object", "detailed"]
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)
"""The five kinds of caption that VDC asks for."""

Row = dict[str, str]
"""One question in the official form: ``question``, ``answer`` and ``category``."""

NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
CAMERA: dict[Camera, str] = {
    "static": "The camera does not move",
    "pans left": "The camera pans to the left",
    "pans right": "The camera pans to the right",
    "zooms in": "The camera zooms in",
    "zooms out": "The camera zooms out",
}


def questions(scene: Scene, aspect: Aspect) -> list[Row]:
    """Four to eight questions about one aspect of a clip, their answers true by construction."""
    makers = {
        "camera": _camera_questions,
        "short": _short_questions,
        "background": _background_questions,
        "main_object": _main_object_questions,
        "detailed": _detailed_questions,
    }
    return makers[aspect](scene)


def _row(category: str, question: str, answer: str) -> Row:
    return {"question": question, "answer": answer, "category": category}


def _camera_questions(scene: Scene) -> list[Row]:
    shot, n_shots = scene.shots[0], len(scene.shots)
    return [
        _row("camera movement", "What does the camera do?", CAMERA[shot.camera].lower()),
        _row("zoom", "Does the camera zoom, and in which direction?", _zoom(shot.camera)),
        _row("pan", "Does the camera pan, and in which direction?", _pan(shot.camera)),
        _row("transitions", "Is there a cut in the video?", "yes" if n_shots > 1 else "no"),
        _row("transitions", "How many shots does the video consist of?", NUMBERS[n_shots]),
        _row("lighting", "How does the brightness change during the video?", _light(shot.light)),
    ]


def _short_questions(scene: Scene) -> list[Row]:
    shot, main = scene.shots[0], scene.main
    return [
        _row("object", "What is the main object at the start of the video?", _main(scene)),
        _row("action", "How does the main object move in the scene?", motion(main)),
        _row("number", "How many objects are shown at the start?", NUMBERS[len(shot.things)]),
        _row("background", "What color is the background at the start?", shot.background),
        _row("change", "What happens besides objects moving?", event(scene) or "nothing"),
    ]


def _background_questions(scene: Scene) -> list[Row]:
    shot = scene.shots[0]
    rows = [
        _row("color", "What color is the background at the start of the video?", shot.background),
        _row("texture", "Is the background plain or patterned?", pattern(shot)),
        _row("text", "What text is written on the background?", shot.text or "there is no text"),
        _row("lighting", "How does the brightness of the scene change?", _light(shot.light)),
    ]
    later = scene.shots[1:]
    changed = f"yes, it becomes {later[-1].background}" if later else "no"
    rows.append(_row("change", "Is the background replaced by another one?", changed))
    return rows


def _main_object_questions(scene: Scene) -> list[Row]:
    main, n_things = scene.main, len(scene.shots[0].things)
    rows = [
        _row("color", "What color is the main object at the start of the video?", main.color),
        _row("shape", "What shape is the main object at the start of the video?", main.shape),
        _row("action", "How does the main object move in the scene?", motion(main)),
        *_location_questions(scene),
        _row("number", "How many objects are there at the start?", NUMBERS[n_things]),
    ]
    others = [thing for thing in scene.shots[0].things if thing.name != main.name]
    rows += [
        _row("object", "What other object is shown?", with_article(thing.name)) for thing in others
    ]
    if len(scene.shots) > 1:
        rows.append(_row("object", "What appears after the cut?", with_article(_last(scene).name)))
    return rows


def _detailed_questions(scene: Scene) -> list[Row]:
    shot, main = scene.shots[0], scene.main
    return [
        _row("object", "What is the main object at the start of the video?", _main(scene)),
        _row("number", "How many objects are there at the start?", NUMBERS[len(shot.things)]),
        _row("action", "How does the main object move in the scene?", motion(main)),
        *_location_questions(scene),
        _row("background", "What color is the background at the start?", shot.background),
        _row("texture", "Is the background plain or patterned?", pattern(shot)),
        _row("camera", "What does the camera do?", CAMERA[shot.camera].lower()),
        _row("change", "What happens besides objects moving?", event(scene) or "nothing"),
    ]


def _location_questions(scene: Scene) -> list[Row]:
    if all_alike(scene.shots[0]):
        return []  # Which of them would be meant?
    where = position(scene.main)
    return [_row("location", "Where in the frame is the main object at the start?", where)]


def _main(scene: Scene) -> str:
    if all_alike(scene.shots[0]):
        return f"{NUMBERS[len(scene.shots[0].things)]} {scene.main.name}s"
    return with_article(scene.main.name)


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


def _zoom(camera: Camera) -> str:
    return {"zooms in": "yes, in", "zooms out": "yes, out"}.get(camera, "no")


def _pan(camera: Camera) -> str:
    return {"pans left": "yes, to the left", "pans right": "yes, to the right"}.get(camera, "no")


def _light(light: Light) -> str:
    return "it stays the same" if light == "constant" else f"it gets {light}"


def pattern(shot: Shot) -> str:
    """The look of a background besides its colour."""
    return "plain" if shot.pattern == "plain" else "patterned with darker dots"


def event(scene: Scene) -> str:
    """What happens besides objects moving, as a clause, or nothing."""
    shot = scene.shots[0]
    if len(scene.shots) > 1:
        background = with_article(scene.shots[-1].background)
        thing = with_article(_last(scene).name)
        return f"there is a cut to {thing} on {background} background"
    if shot.light != "constant":
        return f"the picture gets {shot.light}"
    return "" if shot.camera == "static" else f"the camera {shot.camera}"


def _last(scene: Scene) -> Thing:
    return scene.shots[-1].things[0]


def with_article(noun: str) -> str:
    """A noun behind its indefinite article, such as ``an orange square``."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
