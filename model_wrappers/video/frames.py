"""Frames of a clip: chosen by a sampling, read by PyAV or decord, whichever can."""

from __future__ import annotations

import time
from importlib.util import find_spec
from itertools import count
from typing import TYPE_CHECKING, Final

from loguru import logger

from lmms_eval_captions.judges.errors import INSTALL_EVAL, DataError, NoVideosError
from lmms_eval_captions.model_wrappers.video import decoders, readers
from lmms_eval_captions.model_wrappers.video.containers import check_file
from lmms_eval_captions.model_wrappers.video.limits import DEFAULT_LIMITS, Limits
from lmms_eval_captions.model_wrappers.video.reading_errors import (
    LimitError,
    RefusedError,
    UnreadableError,
    one_line,
)
from lmms_eval_captions.model_wrappers.video.resizing import MAX_PIXELS
from lmms_eval_captions.model_wrappers.video.sampling import Sampling, Uniform

if TYPE_CHECKING:
    from pathlib import Path

    from lmms_eval_captions.model_wrappers.video.clip import Clip
    from lmms_eval_captions.model_wrappers.video.readers import VideoReader


_MOST_NAMED: Final = 5
"""Clips that decord cannot read and the log names; there may be thousands of one codec."""
_UNREAD: Final = count(1)


def read_frames(
    path: Path,
    frames: int | Sampling,
    *,
    max_pixels: int | None = MAX_PIXELS,
    n_threads: int = 0,
    limits: Limits = DEFAULT_LIMITS,
    video_reader: VideoReader = "pyav",
) -> Clip:
    """The frames of a video that a sampling chooses.

    PyAV seeks in MP4, MOV, Matroska and WebM (see ``frames_by_seeking``), and decodes all of any
    other clip: the readable start of a file that was cut off, damaged files, stills. decord is
    asked last, for what PyAV cannot decode at all: it misses frames of streams and edit lists. What
    kind of file it is, is read from its content and not from its name. Only real containers are
    opened, and no other file, whatever they name; decoding runs in a process of its own, whose
    crash is this clip's alone.

    With ``video_reader="decord"`` decord is asked first, and counts, finds and colours frames by
    its own lights; PyAV reads what decord cannot, and the log says so.

    Args:
        path: Video file.
        frames: The sampling; a number stands for so many evenly spaced frames (``Uniform``).
        max_pixels: Larger frames are shrunk to this area, keeping their shape; ``None`` keeps them.
        n_threads: Threads of one decoder, 0 for as many as it likes.
        limits: Longest time and most memory for this clip.
        video_reader: Who is asked first.

    Returns:
        The clip, without repeated frames.

    Raises:
        ValueError: If the number of frames is below 1.
        SettingsError: If the video reader is not there.
        NoVideosError: If PyAV is not installed.
        DataError: If there is no such regular file, it holds no readable frame, or reading it goes
            beyond a limit.
    """
    sampling = Uniform(frames) if isinstance(frames, int) else frames
    if find_spec("av") is None:
        raise NoVideosError(f"reading videos needs av, which is not installed. Run: {INSTALL_EVAL}")
    n_bytes = check_file(path)
    until_s = time.monotonic() + limits.timeout_s
    reasons = []
    for reader in readers.readers_of(video_reader):
        try:
            return decoders.DECODERS.read(
                reader,
                path,
                sampling,
                max_pixels=max_pixels,
                n_threads=n_threads,
                limits=limits,
                until_s=until_s,
            )
        except UnreadableError as error:
            if reader == video_reader:
                _say_other(path, error)
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


def _say_other(path: Path, error: UnreadableError) -> None:
    number = next(_UNREAD)
    more = "; further clips like it are not named" if number == _MOST_NAMED else ""
    level = "WARNING" if number <= _MOST_NAMED else "DEBUG"
    logger.log(level, "{}: decord cannot read it ({}); PyAV is asked{}", path, error, more)
