"""Frames of a clip: chosen by a sampling, read by PyAV or decord, whichever can."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.limits import Limits
from lmms_eval_captions.model_wrappers.video.sampling import Sampling, Uniform, spread

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

MAX_PIXELS = 1920 * 1088
"""Larger frames are shrunk to this area by default: what no captioner can see costs no memory."""
DEFAULT_LIMITS: Final = Limits()


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
    limits: Limits = DEFAULT_LIMITS,
) -> Clip:
    """The frames of a video that a sampling chooses.

    PyAV seeks where its frames are provably those that decoding all of the clip gives (see
    ``packet_marks``), and decodes all of any other clip: the readable start of a file that was cut
    off, damaged files, stills. decord is asked last, for what PyAV cannot decode at all: on its own
    it misses frames of streams and edit lists. What kind of file it is, is read from its content
    and not from its name. Only real containers are opened, and no other file, whatever they name;
    decoding runs in a process of its own, whose crash is this clip's alone.

    Args:
        path: Video file.
        frames: The sampling; a number stands for so many evenly spaced frames (``Uniform``).
        max_pixels: Larger frames are shrunk to this area, in shape; ``None`` keeps them.
        n_threads: Threads of one decoder, 0 for as many as it likes.
        limits: Longest time and most memory for this clip.

    Returns:
        The clip, without repeated frames.

    Raises:
        ValueError: If the number of frames is below 1.
        DataError: If there is no such regular file, it holds no readable frame, or reading it goes
            beyond a limit.
    """
    sampling = Uniform(frames) if isinstance(frames, int) else frames
    from lmms_eval_captions.model_wrappers.video.containers import (
        LimitError,
        RefusedError,
        check_file,
    )
    from lmms_eval_captions.model_wrappers.video.decoders import DECODERS
    from lmms_eval_captions.model_wrappers.video.readers import READERS

    n_bytes = check_file(path)
    until_s = time.monotonic() + limits.timeout_s
    reasons = []
    for reader in READERS:
        try:
            return DECODERS.read(
                reader,
                path,
                sampling,
                max_pixels=max_pixels,
                n_threads=n_threads,
                limits=limits,
                until_s=until_s,
            )
        except UnreadableError as error:
            reasons.append(f"{reader}: {error}")
        except LimitError as error:
            raise DataError(
                f"expected a video that can be read within limits, {path} ({n_bytes} bytes) is not "
                f"one; {error}"
            ) from error
        except RefusedError as error:
            reasons = [str(error)]
            break
        except (MemoryError, OSError) as error:
            reasons = [f"{type(error).__name__}: {one_line(error)}"]
            break
    raise DataError(
        f"expected a readable video, {path} ({n_bytes} bytes) is not one; {'; '.join(reasons)}; "
        "fetch or encode the file again"
    )


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

    size = shrunk(width, height, max_pixels)
    return np.asarray(cv2.resize(frame, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def shrunk(width: int, height: int, max_pixels: int) -> tuple[int, int]:
    """Width and height, shrunk in shape to at most ``max_pixels``.

    >>> shrunk(7680, 4320, 1920 * 1080)
    (1920, 1080)
    """
    scale = min(1.0, (max_pixels / (height * width)) ** 0.5)
    return max(1, int(width * scale)), max(1, int(height * scale))


def one_line(error: Exception) -> str:
    """The first line of an error of a library, or its kind."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
