"""Classical computer vision for the baseline captioner, in sentences."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.lmms_eval_tasks.sample.wording import NUMBERS, position, with_article

Seen = Mapping[str, Sequence[str]]
"""Sentences about a stretch of video between cuts, by their subject."""

_SIDE: Final = 320
"""Longer side, in pixels, to which frames are shrunk; all thresholds were set at this size."""
_MIN_AREA, _MIN_LETTER_AREA = 0.005, 0.001
"""Smallest object and smallest letter, as shares of the frame."""
_MARK_PIXELS: Final = (6, 150)
"""Sizes of the marks of a pattern, in pixels."""
_MIN_MARKS: Final = 20
_MAX_OBJECTS: Final = 8
"""More parts than this are clutter, not objects."""
_MIN_MOTION, _MIN_SHIFT, _MIN_ZOOM = 0.08, 0.06, 1.12
"""Smallest motion of an object, and smallest shift and magnification by the camera, that count;
distances are shares of the frame."""
_MIN_LIGHT: Final = 1.25
"""Smallest ratio of brightness that counts as a change of light."""
_GRID, _MIN_CELLS = 4, 8
"""The frame has _GRID x _GRID cells; points in fewer of them may all lie on one object."""


class Part(NamedTuple):
    """Connected part of a picture in one colour; lengths are shares of the frame's."""

    color: str
    shape: str | None
    """``circle``, ``square``, ``triangle``, ``rectangle``, or ``None`` for any other outline."""
    center: tuple[float, float]
    """From the upper left."""
    height: float
    area: float


def read_shots(frames: NDArray[np.uint8]) -> list[Seen]:
    """Measure the shots of a clip.

    Args:
        frames: Shape (n, height, width, 3), RGB, n >= 1, evenly spaced in time.

    Returns:
        Sentences about the ``objects``, ``background``, ``camera`` and ``light`` of each shot; none
        about what is not clear.
    """
    import cv2

    scale = min(1.0, _SIDE / max(frames.shape[1:3]))
    size = (max(1, round(frames.shape[2] * scale)), max(1, round(frames.shape[1] * scale)))
    small = np.stack([cv2.resize(frame, size, interpolation=cv2.INTER_AREA) for frame in frames])
    # At a cut, the colours change by far more than is usual in this clip (in a pan, every step is
    # large), and a change of light does not explain it.
    pairs = list(itertools.pairwise(small))
    steps = [_color_step(earlier, later) for earlier, later in pairs]
    threshold = max(0.35, 2.5 * float(np.median(steps)) + 0.1) if steps else 0.0
    cuts = [
        index
        for index, step in enumerate(steps, start=1)
        if step > threshold and _unlikeness(*pairs[index - 1]) > 0.25
    ]
    return [_read_shot(shot) for shot in np.split(small, cuts)]


def _color_step(earlier: NDArray[np.uint8], later: NDArray[np.uint8]) -> float:
    """Return the Hellinger distance of two frames' colour histograms, in [0, 1]."""
    bins = [(f.reshape(-1, 3) >> 5).astype(np.int32) @ (64, 8, 1) for f in (earlier, later)]
    first, second = (np.bincount(b, minlength=512) / len(b) for b in bins)
    return float(np.sqrt(max(0.0, 1.0 - np.sum(np.sqrt(first * second)))))


def _unlikeness(earlier: NDArray[np.uint8], later: NDArray[np.uint8]) -> float:
    """Return the remainder of the second picture minus the first one dimmed or lit, in [0, 1]."""
    before, after = earlier.astype(np.float64), later.astype(np.float64)
    gain = np.sum(before * after) / max(np.sum(before * before), 1.0)
    return float(np.sqrt(np.sum((after - gain * before) ** 2) / max(np.sum(after * after), 1.0)))


def _read_shot(frames: NDArray[np.uint8]) -> Seen:
    import cv2

    gray = np.stack([cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) for frame in frames])
    move, placement = _read_camera(gray)
    # Dim light turns colours into black and brown: they are named in the brightest frame.
    brightest = frames[int(gray.mean(axis=(1, 2)).argmax())]
    background, n_marks, parts = _read_layout(frames[0])
    last_parts, letters = _read_layout(frames[-1])[2], _letters(parts)
    objects = {
        part: _motion(part, last_parts, placement)
        for part in sorted(parts, key=lambda part: -part.area)
        # An odd patch in the background's own colour is rather a fold or shadow of it.
        if part.area >= _MIN_AREA
        and part not in letters
        and (part.shape or part.color != background)
    }
    return {
        "objects": _objects(objects),
        "background": _background(brightest, n_marks >= _MIN_MARKS, bool(letters)),
        "camera": [f"The camera {move}."] if move else [],
        "light": _light(gray),
    }


def _objects(objects: Mapping[Part, str | None]) -> list[str]:
    """Return sentences about objects, each with its motion, the largest first."""
    if len(objects) > _MAX_OBJECTS:
        return ["Many separate parts are visible."]
    groups: dict[tuple[str | None, ...], list[Part]] = {}
    for part, motion in objects.items():
        groups.setdefault((motion, part.color, part.shape), []).append(part)
    sentences = [_alike(parts, motion) for (motion, *_), parts in groups.items()]
    if len(groups) > 1:
        sentences.append(f"{NUMBERS[len(objects)].capitalize()} objects stand out.")
    return sentences


def _alike(parts: Sequence[Part], motion: str | None) -> str:
    """Return a sentence about objects that look and move alike."""
    first, name = parts[0], f"{parts[0].color} {parts[0].shape or 'area'}"
    subject = f"{with_article(name)} {position(first.center)}"
    visible, still, moving = "is visible", "does not move", f"moves {motion}"
    if len(parts) > 1:
        subject = f"{NUMBERS[len(parts)]} {name}s"
        visible, still, moving = "are visible", "do not move", f"move {motion}"
    predicate = {None: visible, "still": still}.get(motion, moving)
    return f"{subject[0].upper()}{subject[1:]} {predicate}."


def _background(brightest: NDArray[np.uint8], is_patterned: bool, has_letters: bool) -> list[str]:
    color = _read_layout(brightest)[0]
    if color is None:
        names, counts = np.unique(_color_names(brightest), return_counts=True)
        order = [i for i in np.argsort(-counts, kind="stable") if counts[i] >= 0.2 * counts.sum()]
        tones = " and ".join(names[order[:3]])
        return [f"The picture is mostly {tones}."] if tones else []
    pattern = " with many small marks on it" if is_patterned else ""
    letters = ["Something that may be a line of text is shown."] if has_letters else []
    return [f"The background is mostly {color}{pattern}.", *letters]


def _light(gray: NDArray[np.uint8]) -> list[str]:
    levels = np.maximum(gray.mean(axis=(1, 2)), 1.0)
    third = max(1, len(levels) // 3)
    change = float(levels[-third:].mean() / levels[:third].mean())
    if len(gray) > 1 and not 1 / _MIN_LIGHT <= change <= _MIN_LIGHT:
        return [f"The picture gets {'brighter' if change > 1 else 'darker'}."]
    # Light that goes up and down again is not the same.
    is_same = len(gray) > 1 and levels.max() / levels.min() < 1.4
    return ["The brightness stays about the same."] if is_same else []


def _read_camera(gray: NDArray[np.uint8]) -> tuple[str | None, NDArray[np.float64] | None]:
    """Return the camera's movement in words, and how it moves the first frame's points.

    The second is a transform of shares of the frame, shape (3, 3), to their location in the last
    frame. Both are ``None`` if the movement is not clear.
    """
    height, width = gray.shape[1:]
    to_pixels = np.diag([width, height, 1.0])
    center = np.array([width / 2, height / 2, 1.0])
    total, shifts = np.eye(3), []
    for earlier, later in itertools.pairwise(gray):
        step = _camera_step(earlier, later)
        if step is None:
            return None, None
        total = step @ total
        shifts.append((total @ center - center)[:2] / (width, height))
    if not shifts:
        return None, None
    zoom = float(np.hypot(total[0, 0], total[1, 0]))
    total = np.linalg.inv(to_pixels) @ total @ to_pixels
    across, along = shifts[-1]
    # The picture goes against the camera.
    if not 1 / _MIN_ZOOM < zoom < _MIN_ZOOM:
        move = "zooms in" if zoom > 1 else "zooms out"
    elif np.abs(shifts).max() < _MIN_SHIFT:
        move = "does not appear to move"
    elif max(abs(across), abs(along)) < _MIN_SHIFT:
        return None, None  # it came back
    elif abs(across) >= abs(along):
        move = f"pans to the {'left' if across > 0 else 'right'}"
    else:
        move = f"tilts {'up' if along > 0 else 'down'}"
    return move, total


def _camera_step(
    earlier: NDArray[np.uint8], later: NDArray[np.uint8]
) -> NDArray[np.float64] | None:
    """Return the transform from one frame to the next, shape (3, 3), ``None`` if not clear."""
    import cv2

    start = cv2.goodFeaturesToTrack(earlier, 300, 0.02, 6)
    if start is None or _n_cells(start, earlier.shape) < _MIN_CELLS:
        # The points may all lie on one object: the rest of the picture decides.
        before, after = earlier.astype(np.float64), later.astype(np.float64)
        gain = float(np.median(after) / max(np.median(before), 1.0))
        return np.eye(3) if np.mean(np.abs(after - gain * before) > 14) < 0.25 else None
    end, status, _ = cv2.calcOpticalFlowPyrLK(
        earlier, later, start, None, winSize=(21, 21), maxLevel=4
    )
    start, end = start[status == 1], end[status == 1]
    if _n_cells(start, earlier.shape) < _MIN_CELLS:
        return None
    affine, inliers = cv2.estimateAffinePartial2D(start, end, ransacReprojThreshold=1.5)
    if affine is None or inliers.mean() < 0.5:
        return None
    return np.vstack([affine, [0.0, 0.0, 1.0]])


def _n_cells(points: NDArray[np.float32], shape: tuple[int, ...]) -> int:
    cells = (points.reshape(-1, 2) * _GRID / (shape[1], shape[0])).astype(int)
    return len(np.unique(cells, axis=0))


def _read_layout(frame: NDArray[np.uint8]) -> tuple[str | None, int, list[Part]]:
    """Return one frame's background colour, number of small marks, and parts of one colour each."""
    import cv2

    pixels = frame.reshape(-1, 3)
    bins = (pixels >> 4).astype(np.int32) @ (256, 16, 1)
    commonest = np.median(pixels[bins == np.bincount(bins).argmax()], axis=0).astype(np.uint8)
    lab = cv2.cvtColor(frame, cv2.COLOR_RGB2LAB).astype(np.int32)
    reference = cv2.cvtColor(commonest.reshape(1, 1, 3), cv2.COLOR_RGB2LAB).astype(np.int32)
    stands_out = np.linalg.norm(lab - reference, axis=2) > 24
    if stands_out.mean() > 0.5:
        return None, 0, []
    sizes = cv2.connectedComponentsWithStats(stands_out.astype(np.uint8))[2][1:, cv2.CC_STAT_AREA]
    n_marks = int(np.sum((sizes >= _MARK_PIXELS[0]) & (sizes <= _MARK_PIXELS[1])))
    names = np.where(stands_out, _color_names(frame), "")
    parts = [part for name in np.unique(names) if name for part in _parts(str(name), names == name)]
    return str(_color_names(commonest.reshape(1, 1, 3))[0, 0]), n_marks, parts


def _color_names(pixels: NDArray[np.uint8]) -> NDArray[np.str_]:
    """Return the colour name of each pixel, shape (height, width), from RGB."""
    import cv2

    hue, saturation, value = np.moveaxis(cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV), -1, 0)
    is_gray = (saturation < 45) | (value < 40)
    is_pale = (saturation < 130) & (value > 170)
    return np.select(
        [
            is_gray & (value < 50), is_gray & (value > 205), is_gray,
            (hue >= 4) & (hue < 20) & (value < 165), is_pale & ((hue < 8) | (hue >= 152)),
            hue < 8, hue < 20, hue < 34, hue < 85, hue < 128, hue < 152, hue < 168,
        ],
        [
            "black", "white", "gray", "brown", "pink",
            "red", "orange", "yellow", "green", "blue", "purple", "pink",
        ],
        "red",
    )  # fmt: skip


def _parts(color: str, mask: NDArray[np.bool_]) -> list[Part]:
    """Return the connected parts of a mask, down to the size of letters."""
    import cv2

    height, width = mask.shape
    # The seam between two colours is a thin line of a third one.
    opened = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    _, labels, stats, centers = cv2.connectedComponentsWithStats(opened)
    parts = []
    for label in range(1, len(stats)):
        left, top, wide, high, n_pixels = stats[label].tolist()
        if n_pixels < _MIN_LETTER_AREA * mask.size:
            continue
        is_cut_off = min(left, top) == 0 or left + wide == width or top + high == height
        patch = (labels[top : top + high, left : left + wide] == label).astype(np.uint8)
        center = (float(centers[label][0] / width), float(centers[label][1] / height))
        shape = None if is_cut_off else _shape(patch)
        parts.append(Part(color, shape, center, high / height, n_pixels / mask.size))
    return parts


def _shape(patch: NDArray[np.uint8]) -> str | None:
    """Return the outline's name, or ``None``; only near-perfect outlines get one."""
    import cv2

    contours, _ = cv2.findContours(np.pad(patch, 1), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    contour = max(contours, key=cv2.contourArea)
    area = cv2.contourArea(contour)
    if area < 0.92 * cv2.contourArea(cv2.convexHull(contour)) or patch.sum() < 0.9 * area:
        return None
    _, sides, _ = cv2.minAreaRect(contour)
    elongation, fill = max(sides) / max(min(sides), 1.0), area / max(sides[0] * sides[1], 1.0)
    if fill > 0.9:
        return "square" if elongation < 1.2 else "rectangle"
    if 0.74 < fill < 0.84 and elongation < 1.2:
        return "circle"
    return "triangle" if 0.45 < fill < 0.55 else None


def _letters(parts: list[Part]) -> list[Part]:
    """Return parts that look like letters: odd outlines, three or more of a colour in a row."""
    odd = [part for part in parts if part.shape is None and part.height >= 0.05]

    def is_like(part: Part, other: Part) -> bool:
        is_in_row = abs(part.center[1] - other.center[1]) < 0.3 * part.height
        is_as_high = 0.7 < other.height / part.height < 1.4
        return part.color == other.color and is_in_row and is_as_high

    return [part for part in odd if sum(is_like(part, other) for other in odd) >= 3]


def _motion(
    thing: Part, last_parts: list[Part], placement: NDArray[np.float64] | None
) -> str | None:
    """Return an object's motion up to the last frame, minus the camera's own."""
    same = [
        part.center
        for part in last_parts
        if part.color == thing.color and 0.25 < part.area / thing.area < 4
    ]
    # The outline of an odd patch changes from frame to frame, and its center with it.
    if thing.shape is None or placement is None or not same:
        return None
    steps = np.array(same) - (placement @ (*thing.center, 1.0))[:2]
    across, along = min(steps, key=np.linalg.norm).tolist()
    sideways, upright = "right" if across > 0 else "left", "down" if along > 0 else "up"
    near, far = sorted([abs(across), abs(along)])
    if far < _MIN_MOTION:
        return "still"
    if near > 0.5 * far:
        return f"{upright} and to the {sideways}"
    return f"to the {sideways}" if abs(across) > abs(along) else upright
