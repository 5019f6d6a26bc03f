"""Measurements of a clip by classical computer vision: colours, objects, camera, light, cuts."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.sample.baseline.camera import (
    CameraMove,
    CameraPath,
    read_camera,
)
from lmms_eval_captions.lmms_eval_tasks.sample.baseline.colors import color_shares
from lmms_eval_captions.lmms_eval_tasks.sample.baseline.light import (
    Light,
    flashes,
    read_light,
    unlikeness,
)
from lmms_eval_captions.lmms_eval_tasks.sample.baseline.objects import (
    Part,
    Shape,
    follow,
    read_layout,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIDE = 320
"""Longer side of the frames looked at, in pixels; the thresholds were set at this size."""
_MIN_MOTION = 0.08
"""Smallest way, as a share of the frame's side, that counts as an object's own motion."""
_MAX_OBJECTS = 8
"""More parts than this are clutter, not objects."""
_PATTERN_MARKS = 20
"""Small marks that make a pattern."""


@dataclass(frozen=True, slots=True)
class SeenObject:
    """One object of a shot."""

    color: str
    shape: Shape | None
    """``None`` where its outline is none of the known ones."""
    motion: str | None
    """``still``, ``left``, ``up and to the right`` and so on; ``None`` where it cannot be told."""
    position: tuple[float, float]
    """Center when first seen, as shares of the frame from the upper left."""
    area: float
    """Share of the frame when first seen."""


@dataclass(frozen=True, slots=True)
class SeenShot:
    """One stretch between cuts."""

    background: str | None
    """Colour of an even background, or ``None``."""
    colors: tuple[str, ...]
    """Colours that cover at least a fifth of the picture each, the commonest first."""
    is_patterned: bool
    """True if many small marks lie on the background."""
    objects: tuple[SeenObject, ...]
    """The largest first; empty where nothing can be told apart."""
    is_cluttered: bool
    """True if there were too many parts to call them objects."""
    has_letters: bool
    """True if something looks like a line of text; it is not read."""
    camera: CameraMove | None
    """``None`` where it cannot be told."""
    light: Light | None
    """``None`` where it cannot be told."""


@dataclass(frozen=True, slots=True)
class Observations:
    """All that was measured in a clip."""

    shots: tuple[SeenShot, ...]
    """At least one, in order of time."""
    duration_s: float
    """Length in seconds, 0 where it is not known."""
    n_frames: int
    """Frames looked at."""


def read_scene(frames: NDArray[np.uint8], duration_s: float) -> Observations:
    """Look at sampled frames of a clip.

    Args:
        frames: Shape (n, height, width, 3), RGB, n >= 1, evenly spaced in time.
        duration_s: Length of the clip in seconds, 0 where it is not known.

    Raises:
        ValueError: If ``frames`` has another shape.
    """
    if frames.ndim != 4 or frames.shape[3] != 3 or len(frames) < 1:
        raise ValueError(f"read_scene: expected frames of shape (n, h, w, 3), got {frames.shape}")
    small = _shrink(frames)
    is_flash = flashes(small)
    starts = [0, *find_cuts(small, is_flash), len(small)]
    shots = tuple(
        _read_shot(small[start:end], is_flash[start:end])
        for start, end in itertools.pairwise(starts)
    )
    return Observations(shots, duration_s, len(frames))


def find_cuts(frames: NDArray[np.uint8], is_flash: NDArray[np.bool_] | None = None) -> list[int]:
    """Positions of frames that start a new shot; flashes, of shape (n,), start none.

    A cut is a step in the colours of the picture that is large, that is far larger than the usual
    step of this clip (a pan moves the colours by as much in every step), and that more or less
    light on the same picture does not explain.
    """
    steady = np.flatnonzero(~flashes(frames) if is_flash is None else ~is_flash)
    if len(steady) < 2:
        return []
    pairs = list(itertools.pairwise(frames[steady]))
    steps = np.array([_color_step(earlier, later) for earlier, later in pairs])
    threshold = max(0.35, 2.5 * float(np.median(steps)) + 0.1)
    is_new = np.array([unlikeness(earlier, later) > 0.25 for earlier, later in pairs])
    return [int(steady[index + 1]) for index in np.flatnonzero((steps > threshold) & is_new)]


def _color_step(earlier: NDArray[np.uint8], later: NDArray[np.uint8]) -> float:
    """Hellinger distance of two frames' colour histograms, in [0, 1]."""
    overlap = float(np.sum(np.sqrt(_histogram(earlier) * _histogram(later))))
    return float(np.sqrt(max(0.0, 1.0 - overlap)))


def _shrink(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    import cv2

    scale = _SIDE / max(frames.shape[1:3])
    if scale >= 1:
        return frames
    size = (max(1, round(frames.shape[2] * scale)), max(1, round(frames.shape[1] * scale)))
    return np.stack([cv2.resize(frame, size, interpolation=cv2.INTER_AREA) for frame in frames])


def _histogram(frame: NDArray[np.uint8]) -> NDArray[np.float64]:
    bins = (frame.reshape(-1, 3) >> 5).astype(np.int32) @ np.array([64, 8, 1])
    counts = np.bincount(bins, minlength=512).astype(np.float64)
    return np.asarray(counts / counts.sum())


def _gray(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    import cv2

    return np.stack([cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) for frame in frames])


def _read_shot(frames: NDArray[np.uint8], is_flash: NDArray[np.bool_]) -> SeenShot:
    light = read_light(_gray(frames), is_flash)
    frames = frames[~is_flash]
    gray = _gray(frames)
    camera = read_camera(gray)
    layouts = [read_layout(frame) for frame in frames]
    # Dim light turns colours into black and brown: they are named where the shot is brightest.
    brightest = int(gray.mean(axis=(1, 2)).argmax())
    size = (frames.shape[2], frames.shape[1])
    tracks = follow(layouts, float(np.hypot(*size)))
    is_cluttered = len(tracks) > _MAX_OBJECTS
    background = layouts[brightest].background
    every = [_object(track, camera, size) for track in tracks]
    # An odd patch in a shade of the background is rather a fold or shadow of it.
    objects = [thing for thing in every if thing.shape or not _is_shade(thing.color, background)]
    shares = color_shares(frames[brightest])
    return SeenShot(
        background=background,
        colors=tuple(name for name, share in shares.items() if share >= 0.2),
        is_patterned=float(np.median([layout.n_marks for layout in layouts])) >= _PATTERN_MARKS,
        objects=() if is_cluttered else tuple(objects),
        is_cluttered=is_cluttered,
        has_letters=float(np.mean([layout.has_letters for layout in layouts])) > 0.5,
        camera=camera.move,
        light=light,
    )


def _is_shade(color: str, background: str | None) -> bool:
    return color == background or {color, background} <= {"black", "gray", "white"}


def _object(track: dict[int, Part], camera: CameraPath, size: tuple[int, int]) -> SeenObject:
    first = track[min(track)]
    shapes = Counter(part.shape for part in track.values() if part.shape is not None)
    shape, n_votes = shapes.most_common(1)[0] if shapes else (None, 0)
    colors = Counter(part.color for part in track.values())
    has_shape = n_votes > len(track) / 2
    # The outline of an odd patch changes from frame to frame, and its center with it.
    is_followed = has_shape and camera.move is not None
    return SeenObject(
        color=colors.most_common(1)[0][0],
        shape=shape if has_shape else None,
        motion=_motion(track, camera.placements, size) if is_followed else None,
        position=(first.center[0] / size[0], first.center[1] / size[1]),
        area=first.area,
    )


def _motion(track: dict[int, Part], placements: NDArray[np.float64], size: tuple[int, int]) -> str:
    """Return the motion of an object in the scene, minus the camera's own."""
    start, end = min(track), max(track)
    carried = placements[end] @ np.linalg.inv(placements[start]) @ [*track[start].center, 1.0]
    across = float(track[end].center[0] - carried[0]) / size[0]
    along = float(track[end].center[1] - carried[1]) / size[1]
    sideways = "right" if across > 0 else "left"
    upright = "down" if along > 0 else "up"
    if max(abs(across), abs(along)) < _MIN_MOTION:
        return "still"
    if min(abs(across), abs(along)) > 0.5 * max(abs(across), abs(along)):
        return f"{upright} and to the {sideways}"
    return sideways if abs(across) > abs(along) else upright
