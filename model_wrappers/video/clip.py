"""Some frames of a video, and what reading them may cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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
    """Length of the complete video in seconds; 0 if the file does not say."""
    fps: float
    """Frames a second of the complete video, on average; 0 if the file does not say."""
    n_total: int
    """Readable frames in the complete video, >= 1."""
    is_image: bool = False
    """True for a picture that a task shows: one frame, and no time at all."""


def make_clip(
    frames: NDArray[np.uint8],
    timestamps_s: NDArray[np.float64],
    *,
    fps: float,
    n_total: int,
    end_s: float | None = None,
) -> Clip:
    """Return a clip whose length follows from its number of frames and their rate.

    ``end_s`` is when the last frame of the video ends, in seconds from the first, if known. If the
    rate differs from it by more than half a frame, the rate is wrong: files of a variable rate
    often give the highest one.
    """
    duration_s = n_total / fps if fps > 0 else 0.0
    if end_s and (not duration_s or 2 * abs(duration_s - end_s) > end_s / n_total):
        duration_s, fps = end_s, n_total / end_s
    return Clip(frames, timestamps_s, duration_s=duration_s, fps=fps, n_total=n_total)


@dataclass(frozen=True, slots=True)
class Limits:
    """Time and memory that one clip may cost; beyond them it is given up."""

    timeout_s: float = 300.0
    """Seconds of reading and decoding, above 0."""
    memory_gib: float = 4.0
    """Memory of the decoding process in GiB, above 0, in addition to the requested frames; enforced
    on Linux."""


DEFAULT_LIMITS: Final = Limits()
