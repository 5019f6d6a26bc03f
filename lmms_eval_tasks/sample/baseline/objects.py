"""Objects that stand out from an even background: segmentation, shape, and their way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.sample.baseline.colors import NAMES, color_name, color_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Shape = Literal["circle", "square", "triangle", "rectangle"]

_MIN_AREA = 0.005
"""Smallest object, as a share of the frame."""
_MIN_LETTER_AREA = 0.001
"""Smallest letter, as a share of the frame."""
_MIN_LETTER_HEIGHT = 0.05
"""Smallest letter, as a share of the frame's height."""
_MIN_EVEN = 0.5
"""Share of the frame in one colour that makes it a background to see objects against."""
_MARK_PIXELS = (6, 150)
"""Sizes of parts that are counted as marks of a pattern."""


@dataclass(frozen=True, slots=True)
class Part:
    """One connected patch of one colour in one frame."""

    color: str
    shape: Shape | None
    """``None`` where the outline is none of the known ones, or is cut off by the frame's edge."""
    center: tuple[float, float]
    """Column and row in pixels."""
    area: float
    """Share of the frame."""
    box: tuple[int, int, int, int]
    """Left, top, width and height in pixels."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Content of one frame."""

    background: str | None
    """Colour name of an even background, or ``None`` where no colour covers enough."""
    parts: tuple[Part, ...]
    """Objects from large to small; empty without an even background."""
    has_letters: bool
    """True if a row of small odd shapes looks like text."""
    n_marks: int
    """Patches too small for objects."""


def read_layout(frame: NDArray[np.uint8]) -> Layout:
    """Background and objects of one frame, shape (height, width, 3), RGB."""
    import cv2

    lab = cv2.cvtColor(frame, cv2.COLOR_RGB2LAB).astype(np.int32)
    background = _commonest_color(frame)
    reference = cv2.cvtColor(background.reshape(1, 1, 3), cv2.COLOR_RGB2LAB).astype(np.int32)
    stands_out = np.linalg.norm(lab - reference, axis=2) > 24
    if stands_out.mean() > 1 - _MIN_EVEN:
        return Layout(None, (), has_letters=False, n_marks=0)
    every = _parts(frame, stands_out)
    letters = _letters([part for part in every if part.box[3] >= _letter_height(frame)])
    n_marks = _count_marks(stands_out)
    objects = [part for part in every if part.area >= _MIN_AREA and part not in letters]
    objects.sort(key=lambda part: -part.area)
    return Layout(color_name(background), tuple(objects), bool(letters), n_marks)


def follow(layouts: Sequence[Layout], diagonal: float) -> list[dict[int, Part]]:
    """Each object's part in every frame that shows it, keyed by the frame's position.

    Args:
        layouts: One per frame, in order of time.
        diagonal: Of the frame, in pixels.

    Returns:
        Objects seen in at least half of the frames, the largest first.
    """
    tracks: list[dict[int, Part]] = []
    for index, layout in enumerate(layouts):
        free = list(layout.parts)
        for track in tracks:
            part = _nearest(track[max(track)], free, 0.25 * diagonal)
            if part is not None:
                track[index] = part
                free.remove(part)
        tracks.extend({index: part} for part in free)
    lasting = [track for track in tracks if len(track) >= max(1, len(layouts) / 2)]
    return sorted(lasting, key=lambda track: -track[min(track)].area)


def _letter_height(frame: NDArray[np.uint8]) -> float:
    return _MIN_LETTER_HEIGHT * float(frame.shape[0])


def _commonest_color(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    pixels = frame.reshape(-1, 3)
    bins = (pixels >> 4).astype(np.int32) @ np.array([256, 16, 1])
    in_mode = bins == np.bincount(bins).argmax()
    return np.asarray(np.median(pixels[in_mode], axis=0), dtype=np.uint8)


def _parts(frame: NDArray[np.uint8], stands_out: NDArray[np.bool_]) -> list[Part]:
    """Patches of one colour each, down to the size of letters."""
    import cv2

    names = color_names(frame)
    parts = []
    for index, name in enumerate(NAMES):
        mask = ((names == index) & stands_out).astype(np.uint8)
        if not mask.any():
            continue
        # The seam between two colours is a thin line of a third.
        mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
        _, labels, stats, centers = cv2.connectedComponentsWithStats(mask)
        sizes = stats[:, cv2.CC_STAT_AREA]
        for label in np.flatnonzero(sizes >= _MIN_LETTER_AREA * mask.size):
            if label > 0:  # 0 is what the mask leaves out.
                box = tuple(int(value) for value in stats[label][:4])
                center = (float(centers[label][0]), float(centers[label][1]))
                parts.append(_part(name, labels == label, center, box))
    return parts


def _part(
    color: str, mask: NDArray[np.bool_], center: tuple[float, float], box: tuple[int, ...]
) -> Part:
    left, top, wide, high = box
    bottom, right = top + high, left + wide
    is_cut_off = min(left, top) == 0 or bottom == mask.shape[0] or right == mask.shape[1]
    return Part(
        color=color,
        shape=None if is_cut_off else _shape(mask[top:bottom, left:right].astype(np.uint8)),
        center=center,
        area=float(mask.mean()),
        box=(left, top, wide, high),
    )


def _shape(patch: NDArray[np.uint8]) -> Shape | None:
    """The outline's name, or ``None``; only near-perfect outlines get one."""
    import cv2

    contours, _ = cv2.findContours(np.pad(patch, 1), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    contour = max(contours, key=cv2.contourArea)
    area = cv2.contourArea(contour)
    if area < 0.92 * cv2.contourArea(cv2.convexHull(contour)) or patch.sum() < 0.9 * area:
        return None
    (_, radius), (_, (side, other), _) = cv2.minEnclosingCircle(contour), cv2.minAreaRect(contour)
    long, short = max(side, other), max(min(side, other), 1.0)
    if area > 0.9 * np.pi * radius**2:
        return "circle"
    if area > 0.9 * long * short:
        return "square" if long / short < 1.2 else "rectangle"
    triangle_area, _ = cv2.minEnclosingTriangle(contour)
    return "triangle" if area > 0.85 * triangle_area else None


def _letters(parts: Sequence[Part]) -> list[Part]:
    """The longest row of at least three like-sized parts, most of them of no plain shape."""
    best: list[Part] = []
    for first in parts:
        row = [part for part in parts if _on_one_line(first, part)]
        odd = sum(part.shape is None for part in row)
        if len(row) >= 3 and odd > len(row) / 2 and len(row) > len(best):
            best = row
    return best


def _on_one_line(first: Part, other: Part) -> bool:
    high, other_high = first.box[3], other.box[3]
    middles = (first.box[1] + high / 2, other.box[1] + other_high / 2)
    same_line = abs(middles[0] - middles[1]) < 0.3 * high and 0.7 < other_high / high < 1.4
    return first.color == other.color and same_line


def _count_marks(stands_out: NDArray[np.bool_]) -> int:
    import cv2

    _, _, stats, _ = cv2.connectedComponentsWithStats(stands_out.astype(np.uint8))
    sizes = stats[1:, cv2.CC_STAT_AREA]
    return int(np.sum((sizes >= _MARK_PIXELS[0]) & (sizes <= _MARK_PIXELS[1])))


def _nearest(part: Part, others: Sequence[Part], reach: float) -> Part | None:
    """The same object in the next frame: close by, of like size, and rather of its colour."""

    def cost(other: Part) -> float:
        way = float(np.hypot(part.center[0] - other.center[0], part.center[1] - other.center[1]))
        return way + (0.0 if other.color == part.color else 0.5 * reach)

    near = [o for o in others if cost(o) < reach and 0.4 < o.area / part.area < 2.5]
    return min(near, key=cost, default=None)
