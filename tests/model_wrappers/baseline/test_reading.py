"""What the classical captioner sees, against scenes that were drawn and are known."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lmms_eval_captions.lmms_eval_tasks.sample import render
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES, Scene, Shot, Thing
from lmms_eval_captions.model_wrappers.baseline.colors import color_name, color_shares
from lmms_eval_captions.model_wrappers.baseline.objects import read_layout
from lmms_eval_captions.model_wrappers.baseline.reading import Observations, find_cuts, read_scene
from lmms_eval_captions.model_wrappers.baseline.sentences import describe, focus_of
from lmms_eval_captions.model_wrappers.video.frames import read_frames

if TYPE_CHECKING:
    from numpy.typing import NDArray

REAL = Path(__file__).parents[4] / "shared" / "data" / "media" / "video1.mp4"
N_SAMPLED = 16


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Observations]:
    """What is seen in each clip of the sample, after video compression."""
    folder = tmp_path_factory.mktemp("videos")
    observations = {}
    for scene in SCENES:
        path = folder / f"{scene.video_id}.mp4"
        render.write_video(scene, path)
        clip = read_frames(path, N_SAMPLED)
        observations[scene.video_id] = read_scene(clip.frames, clip.duration_s)
    return observations


def _drawn(scene: Scene, n_frames: int = N_SAMPLED) -> NDArray[np.uint8]:
    pictures = list(render.frames(scene))
    return np.stack([pictures[i] for i in np.linspace(0, len(pictures) - 1, n_frames).astype(int)])


def _look(*shots: Shot) -> Observations:
    return read_scene(_drawn(Scene("test", shots)), 2.5)


every_scene = pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.video_id)


@every_scene
def test_cuts_and_backgrounds(scene: Scene, seen: dict[str, Observations]) -> None:
    """As many shots as were drawn, each with its background colour, dotted or plain."""
    shots = seen[scene.video_id].shots
    assert [shot.background for shot in shots] == [shot.background for shot in scene.shots]
    assert [shot.is_patterned for shot in shots] == [s.pattern == "dotted" for s in scene.shots]


@every_scene
def test_objects(scene: Scene, seen: dict[str, Observations]) -> None:
    """Each shot has its objects, no more, with colour, shape and motion in the scene."""
    for shot, drawn in zip(seen[scene.video_id].shots, scene.shots, strict=True):
        got = sorted((thing.color, str(thing.shape), thing.motion) for thing in shot.objects)
        assert got == sorted((thing.color, thing.shape, thing.motion) for thing in drawn.things)


@every_scene
def test_camera_and_light(scene: Scene, seen: dict[str, Observations]) -> None:
    """Pans and zooms have their direction, still cameras none, and light its change."""
    for shot, drawn in zip(seen[scene.video_id].shots, scene.shots, strict=True):
        assert shot.camera == ("none" if drawn.camera == "static" else drawn.camera)
        assert shot.light == drawn.light


@every_scene
def test_letters_only_where_text_was_written(scene: Scene, seen: dict[str, Observations]) -> None:
    """A line of text is suspected in the clip that has one, and in no other."""
    assert seen[scene.video_id].shots[0].has_letters == bool(scene.shots[0].text)


def test_an_object_that_keeps_still_under_a_pan_is_still() -> None:
    """Motion is the object's own: a thing that crosses the frame because the camera pans is still.

    And one that keeps its place in the frame during a pan moves with the camera.
    """
    panned = _look(Shot("gray", (Thing("blue", "circle"),), "dotted", "pans right"))
    assert [thing.motion for thing in panned.shots[0].objects] == ["still"]
    followed = Shot("gray", (Thing("blue", "circle", "right", (0.4, 0.5)),), "dotted", "pans right")
    assert [thing.motion for thing in _look(followed).shots[0].objects] == ["right"]


@pytest.mark.parametrize("color", ["red", "orange", "yellow", "green", "blue", "purple", "pink"])
@pytest.mark.parametrize("shape", ["circle", "square", "triangle", "rectangle"])
def test_colors_and_shapes_of_one_frame(color: Any, shape: Any) -> None:
    """Each colour and shape is named in a single frame, on light and dark ground."""
    thing = Thing(color, shape, size=0.3)
    for background in ("white", "black"):
        frame = next(render.frames(Scene("test", (Shot(background, (thing,)),))))
        parts = read_layout(frame).parts
        assert [(part.color, part.shape) for part in parts] == [(color, shape)]


def test_an_outline_that_is_no_known_shape_gets_no_name() -> None:
    """A cross is an object without a shape, and its motion is not claimed."""
    frames = np.full((8, 240, 320, 3), 245, dtype=np.uint8)
    for index, frame in enumerate(frames):
        left = 60 + 20 * index
        frame[110:130, left : left + 80] = (200, 20, 30)
        frame[80:160, left + 30 : left + 50] = (200, 20, 30)
    (thing,) = read_scene(frames, 1.0).shots[0].objects
    assert (thing.color, thing.shape, thing.motion) == ("red", None, None)


def test_light_alone_is_no_cut() -> None:
    """Dimming moves every colour, and is still one shot."""
    scene = Scene("test", (Shot("white", (Thing("red", "circle"),), light="darker"),))
    assert find_cuts(_drawn(scene)) == []
    assert find_cuts(_drawn(SCENES[5])) == [8]


def test_noise_is_not_described_as_objects() -> None:
    """Pure noise gives no background, object or camera movement."""
    noise = np.random.default_rng(3).integers(0, 256, (6, 120, 160, 3), dtype=np.uint8)
    for shot in read_scene(noise, 1.0).shots:
        assert (shot.background, shot.objects, shot.camera) == (None, (), None)
    assert "object" not in describe(read_scene(noise, 1.0))


def test_one_frame_says_nothing_about_time() -> None:
    """With a single frame there is no word on camera, motion, cuts or light."""
    text = describe(read_scene(_drawn(SCENES[0], 1), 0.0))
    assert text == "A red circle on the left is visible. The background is mostly white."


@pytest.mark.parametrize("shape", [(4, 4, 3), (0, 4, 4, 3), (2, 4, 4, 1)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    """Frames that are no RGB clip are a mistake of the caller."""
    with pytest.raises(ValueError, match="read_scene"):
        read_scene(np.zeros(shape, dtype=np.uint8), 1.0)


def test_tiny_frames_do_not_fail() -> None:
    """Frames of a few pixels are read like any other."""
    assert read_scene(np.zeros((3, 2, 2, 3), dtype=np.uint8), 1.0).shots[0].background == "black"


def test_color_shares_add_up() -> None:
    """Shares of colours cover the frame, the commonest first."""
    frame = np.zeros((10, 10, 3), dtype=np.uint8)
    frame[:, :3] = (250, 250, 250)
    assert color_shares(frame) == {"black": 0.7, "white": 0.3}


@pytest.mark.parametrize(
    ("rgb", "name"),
    [((128, 128, 128), "gray"), ((120, 70, 30), "brown"), ((20, 200, 220), "blue")],
)
def test_color_names(rgb: tuple[int, int, int], name: str) -> None:
    """Hand-picked colours get their everyday name."""
    assert color_name(np.array(rgb, dtype=np.uint8)) == name


@pytest.mark.parametrize(
    ("focus", "first"),
    [
        pytest.param("camera", "The camera zooms in.", id="camera"),
        pytest.param("background", "The background is mostly white", id="background"),
        pytest.param("objects", "An orange square", id="objects"),
        pytest.param("all", "An orange square", id="all"),
    ],
)
def test_the_focus_comes_first(seen: dict[str, Observations], focus: Any, first: str) -> None:
    """The focus moves sentences and drops none; only the short form is shorter."""
    observations = seen[SCENES[4].video_id]
    text = describe(observations, focus)
    assert text.startswith(first)
    whole = describe(observations)
    assert sorted(re.findall(r"[^.]+\.", f" {text}")) == sorted(re.findall(r"[^.]+\.", f" {whole}"))
    assert len(describe(observations, "short")) < len(whole)


@pytest.mark.parametrize(
    ("prompt", "focus"),
    [
        ("Summarize the background setting of the video based on these frames.", "background"),
        ("Describe the main subject, including their attributes and movements.", "objects"),
        ("Imagine the video from these frames and describe it in detail.", "all"),
        ("Write a one-sentence caption for the video.", "short"),
    ],
)
def test_focus_of_a_prompt(prompt: str, focus: str) -> None:
    """The words of a prompt choose the focus."""
    assert focus_of(prompt) == focus


@pytest.mark.skipif(not REAL.is_file(), reason=f"the real clip is not at {REAL}")
def test_the_real_clip_is_described_without_inventions() -> None:
    """Two cuts are found, the busy shots get no objects, and no plain shape is claimed."""
    clip = read_frames(REAL, N_SAMPLED)
    observations = read_scene(clip.frames, clip.duration_s)
    assert find_cuts(clip.frames) == [3, 10]
    assert [shot.background for shot in observations.shots] == [None, "white", None]
    assert all(thing.shape is None for shot in observations.shots for thing in shot.objects)
    assert "at least two cuts" in describe(observations)


def _scene_frames() -> NDArray[np.uint8]:
    """Sixteen equal frames with enough marks to tell where they go."""
    picture = np.full((180, 320, 3), 90, np.uint8)
    rng = np.random.default_rng(0)
    for x, y in rng.integers((10, 10), (300, 160), (90, 2)):
        picture[y : y + 9, x : x + 9] = rng.integers(0, 255, 3)
    return np.repeat(picture[None], N_SAMPLED, axis=0)


def _lit(frames: NDArray[np.uint8], at: list[int], *, gain: float, offset: float = 0) -> None:
    """Change the light of some frames."""
    frames[at] = np.clip(frames[at] * gain + offset, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("dark", [0.0, 0.15, 0.4], ids=["black", "dim", "half"])
def test_a_strobe_is_light_and_no_cut(dark: float) -> None:
    """A scene that is lit and dark in turn is one shot, whose light flickers."""
    frames = _scene_frames()
    _lit(frames, [n for n in range(N_SAMPLED) if n % 3 == 1], gain=dark)
    [shot] = read_scene(frames, 4.0).shots
    assert (shot.light, shot.camera) == ("flickers", "none")
    caption = describe(read_scene(frames, 4.0))
    assert "flickers" in caption
    assert "stays about the same" not in caption


@pytest.mark.parametrize(
    ("gain", "offset"),
    [(0.0, 255), (1.0, 110), (2.5, 0), (0.0, 0)],
    ids=["white", "added", "bright", "blackout"],
)
@pytest.mark.parametrize("at", [[7], [5, 6]])
def test_a_flash_is_light_and_no_cut(gain: float, offset: float, at: list[int]) -> None:
    """One or two frames in another light, after which the picture is what it was."""
    frames = _scene_frames()
    _lit(frames, at, gain=gain, offset=offset)
    [shot] = read_scene(frames, 4.0).shots
    assert (shot.light, shot.camera) == ("flashes", "none")
    assert "appears to be one continuous shot" in describe(read_scene(frames, 4.0))


def test_a_cutaway_is_no_flash() -> None:
    """Another picture of another light between two equal ones is a shot of its own."""
    frames = _scene_frames()
    frames[6:8] = 255 - frames[6:8]
    frames[6:8, 60:120] = (250, 20, 20)
    assert find_cuts(frames) == [6, 8]


@pytest.mark.parametrize("width", [5, 12], ids=["little", "much"])
def test_a_shaken_camera_does_not_rest(width: int) -> None:
    """It goes to and fro and ends where it began."""
    frames = _scene_frames()
    ways = np.random.default_rng(3).integers(-width, width + 1, (N_SAMPLED, 2))
    ways[1::2] = -np.sign(ways[::2]) * np.maximum(np.abs(ways[1::2]), 2)
    ways[-1] = ways[0]
    shaken = np.stack([np.roll(f, tuple(way), (0, 1)) for f, way in zip(frames, ways, strict=True)])
    observations = read_scene(shaken, 4.0)
    assert [shot.camera for shot in observations.shots] == ["shakes"]
    assert "The camera shakes." in describe(observations, "camera")


def test_a_camera_that_goes_and_comes_back_is_not_said_to_rest() -> None:
    """One way there and back is neither a shake nor a camera that does not move."""
    frames = _scene_frames()
    ways = [*range(0, 40, 5), *range(40, 0, -5)]
    moved = np.stack([np.roll(frame, way, 1) for frame, way in zip(frames, ways, strict=True)])
    [shot] = read_scene(moved, 4.0).shots
    assert shot.camera is None


def test_light_that_comes_and_goes_slowly_is_not_called_constant() -> None:
    """Nothing is said of it."""
    frames = _scene_frames()
    for n in range(N_SAMPLED):
        _lit(frames, [n], gain=1 - 0.1 * min(n, N_SAMPLED - 1 - n))
    [shot] = read_scene(frames, 4.0).shots
    assert shot.light is None
