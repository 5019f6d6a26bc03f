"""How much moves in a part of a video, so that still images are told from videos."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.scenes import Span

SIDE: Final = 160
"""Longer side in pixels of the pictures between which motion is measured."""
APART_S: Final = 0.25
"""Seconds between two pictures that are compared."""
_MOVING: Final = 95
"""Percentile of a picture's pixels: something that takes a twentieth of the picture counts."""
_MOMENT_S: Final = 1e-3

Flow = tuple[float, float, float]
"""When two pictures are shown, in seconds, and how far their pixels went, in pixels."""


def displacement(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> float:
    """How far what moves between two pictures goes, in pixels.

    The 95th percentile over pixels of the length of the optical flow (Farnebäck's): the median
    would be 0 wherever a small thing moves before a background at rest.

    Args:
        before: Shape (height, width), gray levels.
        after: The same shape.

    Returns:
        Pixels, >= 0.
    """
    import cv2

    flow = cv2.calcOpticalFlowFarneback(
        before,
        after,
        None,  # type: ignore[call-overload,unused-ignore]  # no flow to begin with
        pyr_scale=0.5,
        levels=3,
        winsize=15,
        iterations=2,
        poly_n=5,
        poly_sigma=1.1,
        flags=0,
    )
    return float(np.percentile(np.hypot(flow[..., 0], flow[..., 1]), _MOVING))


def motion_within(flows: Sequence[Flow], part: Span) -> float:
    """Median displacement within a part: a flash or a compression artefact does not move it.

    Args:
        flows: Of the whole video.
        part: The part.

    Returns:
        Pixels a quarter of a second at a longer side of 160 pixels, >= 0; ``nan`` where the part
        has no two pictures that were compared.

    >>> motion_within([(0.0, 0.25, 2.0), (0.25, 0.5, 4.0), (3.0, 3.25, 9.0)], (0.0, 3.0))
    3.0
    """
    start_s, end_s = part
    inside = [
        pixels
        for first_s, second_s, pixels in flows
        if first_s >= start_s - _MOMENT_S and second_s < end_s - _MOMENT_S
    ]
    return float(np.median(inside)) if inside else nan
