"""Frames of a clip: chosen by a sampling, read by PyAV or decord, whichever can."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.sampling import Sampling, Uniform, spread

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

MAX_PIXELS = 1920 * 1088
"""Larger frames are shrunk to this area by default: what no captioner can see costs no memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """Some frames of a video, and when they are shown."""

    frames: NDArray[np.uint8]
    """Shape (n, height, width, 3), RGB, n >= 1, in order of time, the right way up."""
    timestamps_s: NDArray[np.float64]
    """Shape (n,), seconds from the first frame of the video."""
    duration_s: float
    """Length of the whole video in seconds; 0 where the file gives no frame rate."""
    fps: float
    """Frames a second of the whole video; 0 where the file does not say."""
    n_total: int
    """Readable frames in the whole video, >= 1."""


class UnreadableError(DataError):
    """One reader cannot read a file; the text says why in a few words."""


def read_frames(
    path: Path,
    frames: int | Sampling,
    *,
    max_pixels: int | None = MAX_PIXELS,
    n_threads: int = 0,
) -> Clip:
    """The frames of a video that a sampling chooses.

    PyAV seeks first: it decodes fewer frames than decord for the same pictures. decord reads clips
    whose time stamps lead nowhere, and PyAV from the start reads the rest: the readable start of a
    file that was cut off, damaged files, stills. What kind of file it is, is read from its content
    and not from its name.

    Args:
        path: Video file.
        frames: The sampling; a number stands for so many evenly spaced frames (``Uniform``).
        max_pixels: Larger frames are shrunk to this area, in shape; ``None`` keeps them.
        n_threads: Threads of one decoder, 0 for as many as it likes.

    Returns:
        The clip, without repeated frames.

    Raises:
        ValueError: If the number of frames is below 1.
        DataError: If the file is missing or holds no readable frame.
    """
    sampling = Uniform(frames) if isinstance(frames, int) else frames
    if not path.is_file():
        raise DataError(f"expected a video file, found none at {path}; check the data folder")
    # They import their libraries only when called.
    from lmms_eval_captions.model_wrappers import frames_av, frames_decord

    with suppress(UnreadableError):
        return frames_av.read_by_seeking(path, sampling, max_pixels=max_pixels, n_threads=n_threads)
    try:
        return frames_av.read_from_start(path, sampling, max_pixels=max_pixels, n_threads=n_threads)
    except UnreadableError as error:
        av_reason = error
    try:
        return frames_decord.read(path, sampling, max_pixels=max_pixels, n_threads=n_threads)
    except UnreadableError as decord_reason:
        raise DataError(
            f"expected a readable video, {path} ({path.stat().st_size} bytes) is not one; "
            f"PyAV: {av_reason}; decord: {decord_reason}; fetch or encode the file again"
        ) from decord_reason


def frame_indices(n_total: int, n_frames: int) -> list[int]:
    """Positions of evenly spaced frames, first and last included, without repeats.

    >>> frame_indices(217, 4), frame_indices(2, 8), frame_indices(9, 1)
    ([0, 72, 144, 216], [0, 1], [0])
    """
    return spread(n_total, n_frames)


def make_clip(
    frames: NDArray[np.uint8], timestamps_s: NDArray[np.float64], *, fps: float, n_total: int
) -> Clip:
    """A clip whose length follows from its frames and their rate."""
    duration_s = n_total / fps if fps > 0 else 0.0
    return Clip(
        frames=frames, timestamps_s=timestamps_s, duration_s=duration_s, fps=fps, n_total=n_total
    )


def fit(frame: NDArray[np.uint8], max_pixels: int | None) -> NDArray[np.uint8]:
    """A frame, shrunk in shape to at most ``max_pixels``."""
    height, width = frame.shape[:2]
    if max_pixels is None or height * width <= max_pixels:
        return frame
    import cv2

    scale = (max_pixels / (height * width)) ** 0.5
    size = (max(1, int(width * scale)), max(1, int(height * scale)))
    return np.asarray(cv2.resize(frame, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def one_line(error: Exception) -> str:
    """The first line of an error of a library, or its kind."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
