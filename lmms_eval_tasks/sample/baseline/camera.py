"""Movement of the camera between the frames of one shot: pan, tilt, zoom, or none."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

CameraMove = Literal[
    "none", "pans left", "pans right", "tilts up", "tilts down", "zooms in", "zooms out", "shakes"
]

_MIN_SHIFT = 0.06
"""Smallest way, as a share of the frame's side, that counts as a pan or tilt."""
_MIN_SHAKE = 0.005
"""Smallest step from frame to frame, as a share of the frame's side, of a camera that shakes."""
_MIN_TURNS = 0.3
"""Share of steps that go back on the one before, of a camera that shakes; of a pan hardly any."""
_MIN_ZOOM = 1.12
"""Smallest magnification that counts as a zoom."""
_GRID = 4
"""The frame is cut into _GRID x _GRID cells to see whether the marks followed cover it."""
_MIN_CELLS = 8
"""Cells with marks that move together before their movement is the camera's, not an object's."""


@dataclass(frozen=True, slots=True, eq=False)
class CameraPath:
    """Movement of the picture over one shot."""

    move: CameraMove | None
    """The main movement; ``none`` where the picture rests, ``None`` where it cannot be told."""
    placements: NDArray[np.float64]
    """Shape (n, 3, 3): takes a point of the first frame to its place in each of the n frames."""


def read_camera(frames: NDArray[np.uint8]) -> CameraPath:
    """The camera's movement over one shot.

    Args:
        frames: Shape (n, height, width), gray levels, n >= 1.
    """
    height, width = frames.shape[1:]
    unknown = CameraPath(None, np.repeat(np.eye(3)[None], len(frames), axis=0))
    if len(frames) < 2:
        return unknown
    placements = [np.eye(3)]
    for earlier, later in itertools.pairwise(frames):
        step = _step(earlier, later)
        if step is None:
            # A path with a gap says nothing about where the camera went.
            return unknown
        placements.append(step @ placements[-1])
    return CameraPath(_name(np.stack(placements), (width, height)), np.stack(placements))


def _name(placements: NDArray[np.float64], size: tuple[int, int]) -> CameraMove | None:
    width, height = size
    total = placements[-1]
    zoom = float(np.hypot(total[0, 0], total[1, 0]))
    center = np.array([width / 2, height / 2, 1.0])
    path = (placements @ center - center)[:, :2] / (width, height)
    across, along = path[-1].tolist()
    if not 1 / _MIN_ZOOM < zoom < _MIN_ZOOM:
        return "zooms in" if zoom > 1 else "zooms out"
    steps = np.diff(path, axis=0)
    # Back and forth is neither a pan nor rest.
    unsteady: CameraMove | None = "shakes" if _shakes(steps) else None
    if max(abs(across), abs(along)) < _MIN_SHIFT:
        return unsteady or ("none" if float(np.abs(path).max()) < _MIN_SHIFT else None)
    axis = 0 if abs(across) >= abs(along) else 1
    if np.mean(np.sign(steps[:, axis]) == np.sign(path[-1, axis])) < 0.7:
        return unsteady
    # The picture goes against the camera.
    if axis == 0:
        return "pans left" if across > 0 else "pans right"
    return "tilts up" if along > 0 else "tilts down"


def _shakes(steps: NDArray[np.float64]) -> bool:
    """Return if steps, shape (n, 2), go to and fro."""
    axis = int(np.abs(steps).mean(axis=0).argmax())
    moves = steps[:, axis][np.abs(steps[:, axis]) >= _MIN_SHAKE]
    n_turns = int(np.sum(np.sign(moves[1:]) != np.sign(moves[:-1])))
    return n_turns >= max(2, _MIN_TURNS * len(steps))


def _step(earlier: NDArray[np.uint8], later: NDArray[np.uint8]) -> NDArray[np.float64] | None:
    """Shape (3, 3): from one frame to the next, or ``None`` where the picture does not tell."""
    import cv2

    marks = cv2.goodFeaturesToTrack(earlier, 300, 0.02, 6)
    if marks is None:
        return np.eye(3) if _is_same(earlier, later) else None
    moved, status, _ = cv2.calcOpticalFlowPyrLK(
        earlier, later, marks, None, winSize=(21, 21), maxLevel=4
    )
    back, back_status, _ = cv2.calcOpticalFlowPyrLK(
        later, earlier, moved, None, winSize=(21, 21), maxLevel=4
    )
    error = np.linalg.norm((marks - back).reshape(-1, 2), axis=1)
    kept = (status.ravel() == 1) & (back_status.ravel() == 1) & (error < 1.0)
    start, end = marks.reshape(-1, 2)[kept], moved.reshape(-1, 2)[kept]
    if _n_cells(start, earlier.shape) < _MIN_CELLS:
        # Marks in one corner may all lie on one object, so the rest of the picture decides.
        return np.eye(3) if _is_same(earlier, later) else None
    affine, inliers = cv2.estimateAffinePartial2D(start, end, ransacReprojThreshold=1.5)
    if affine is None:
        return None
    together = inliers.ravel() == 1
    if together.mean() < 0.6 or _n_cells(start[together], earlier.shape) < _MIN_CELLS:
        return None
    return np.vstack([affine, [0.0, 0.0, 1.0]])


def _n_cells(points: NDArray[np.float32], shape: tuple[int, ...]) -> int:
    height, width = shape[:2]
    columns = (points[:, 0] * _GRID / width).astype(int)
    rows = (points[:, 1] * _GRID / height).astype(int)
    return len(set(zip(columns.tolist(), rows.tolist(), strict=True)))


def _is_same(earlier: NDArray[np.uint8], later: NDArray[np.uint8]) -> bool:
    """Return if most of the picture stays in place, except for a change of lighting."""
    before, after = earlier.astype(np.float64), later.astype(np.float64)
    gain = float(np.median(after) / max(np.median(before), 1.0))
    return bool(np.mean(np.abs(after - gain * before) > 14) < 0.25)
