"""Some frames of a video, as captioners and judges are shown them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)  # No slots: caches hold weak references.
class Clip:
    """Some frames of a video, and when they are shown."""

    frames: NDArray[np.uint8]
    """Shape (n, height, width, 3), RGB, n >= 1, in order of time, the right way up."""
    timestamps_s: NDArray[np.float64]
    """Shape (n,), seconds from the first frame of the video."""
    duration_s: float
    """Length of the whole video in seconds, its last frame's included; 0 where the file does
    not say."""
    fps: float
    """Frames a second of the whole video, on average; 0 where the file does not say."""
    n_total: int
    """Readable frames in the whole video, >= 1."""
    is_image: bool = False
    """Whether it is a picture that a task shows, and no video: one frame, and no time at all."""


def make_clip(
    frames: NDArray[np.uint8],
    timestamps_s: NDArray[np.float64],
    *,
    fps: float,
    n_total: int,
    end_s: float | None = None,
) -> Clip:
    """A clip whose length follows from its number of frames and their rate.

    Args:
        frames: As of :class:`Clip`.
        timestamps_s: As of :class:`Clip`.
        fps: The rate that the file gives, 0 for none.
        n_total: As of :class:`Clip`.
        end_s: When the last frame of the video ends, in seconds from the first, where that is
            known. Where the rate says otherwise by more than half a frame, the rate is wrong:
            files of a variable rate often give the highest one.
    """
    duration_s = n_total / fps if fps > 0 else 0.0
    if end_s and (not duration_s or 2 * abs(duration_s - end_s) > end_s / n_total):
        duration_s, fps = end_s, n_total / end_s
    return Clip(
        frames=frames, timestamps_s=timestamps_s, duration_s=duration_s, fps=fps, n_total=n_total
    )
