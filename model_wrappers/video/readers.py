"""The ways to read a clip, by name, in the order in which they are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers.video import (
    frames_by_seeking,
    frames_decord,
    frames_from_start,
)
from lmms_eval_captions.model_wrappers.video.reading_errors import UnreadableError, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lmms_eval_captions.model_wrappers.video.clip import Clip
    from lmms_eval_captions.model_wrappers.video.sampling import Sampling

VideoReader = Literal["pyav", "decord"]
"""What is asked first; ``--model_args video_reader=``."""

READERS: Final = ("PyAV, seeking", "PyAV", "decord")


def readers_of(video_reader: str) -> Sequence[str]:
    """The ways to read a clip, in the order in which they are tried.

    Raises:
        SettingsError: If there is no such reader, or it is not installed.
    """
    if video_reader == "pyav":
        return READERS
    if video_reader != "decord":
        raise SettingsError(
            f"video_reader: expected one of {get_args(VideoReader)}, got {video_reader!r}"
        )
    frames_decord.check()
    return ("decord", *(name for name in READERS if name != "decord"))


def read_with(
    reader: str,
    path: Path,
    sampling: Sampling,
    *,
    max_pixels: int | None,
    n_threads: int,
) -> Clip:
    """The chosen frames by one reader, in this process; arguments as of ``read_frames``.

    Raises:
        UnreadableError: If this reader cannot read the file.
        RefusedError: If none can.
        MemoryError: If there is not enough memory.
    """
    try:
        if reader == "decord":
            return frames_decord.read(path, sampling, max_pixels=max_pixels, n_threads=n_threads)
        if reader == "PyAV":
            return frames_from_start.read(path, sampling, max_pixels=max_pixels)
        return frames_by_seeking.read(path, sampling, max_pixels=max_pixels, n_threads=n_threads)
    except (DataError, MemoryError) as error:
        if isinstance(error.__cause__, MemoryError):  # libav's own is one, too.
            raise error.__cause__ from error
        raise
    except Exception as error:  # Whatever a library raises costs this clip alone.
        raise UnreadableError(f"{type(error).__name__}: {one_line(error)}") from error
