"""Frames of a clip, chosen by a sampling."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, get_args

from lmms_eval_captions.judges.errors import INSTALL_EVAL, DataError, NoVideosError, SettingsError
from lmms_eval_captions.model_wrappers.model_args import one_of
from lmms_eval_captions.model_wrappers.video import decoders
from lmms_eval_captions.model_wrappers.video.clip import DEFAULT_LIMITS, Clip, Limits
from lmms_eval_captions.model_wrappers.video.containers import (
    RefusedError,
    UnreadableError,
    check_file,
)
from lmms_eval_captions.model_wrappers.video.pictures import MAX_PIXELS, one_line
from lmms_eval_captions.model_wrappers.video.sampling import Sampling, Uniform

if TYPE_CHECKING:
    from pathlib import Path


VideoReader = Literal["pyav", "decord"]
"""Value of ``--model_args video_reader=``."""


def require_reader(video_reader: str) -> None:
    """Raise a ``SettingsError`` if there is no such video reader, or it is not installed."""
    one_of("video_reader", video_reader, get_args(VideoReader))
    if video_reader == "decord":
        try:
            import decord  # noqa: F401
        except (ImportError, OSError) as error:  # OSError: its shared library does not load here.
            raise SettingsError(
                f"video_reader=decord: decord cannot be imported here ({error}); install decord "
                "(or eva-decord, where it has no wheel), or leave video_reader at pyav"
            ) from error


def read_frames(
    path: Path,
    frames: int | Sampling,
    *,
    max_pixels: int | None = MAX_PIXELS,
    n_threads: int = 0,
    limits: Limits = DEFAULT_LIMITS,
    video_reader: VideoReader = "pyav",
) -> Clip:
    """Read the frames of a video that a sampling chooses, as players show them.

    PyAV seeks in MP4, MOV, Matroska and WebM, and decodes any other clip from the start, as well as
    one in which seeking is not exact. Only real containers are opened, as their content and not
    their name says, and no other file, whatever they name. Decoding runs in a process of its own,
    whose crash costs only this clip.

    Args:
        path: Video file.
        frames: The sampling; a number stands for as many evenly spaced frames (``Uniform``).
        max_pixels: Larger frames are shrunk to this area, keeping their shape; ``None`` keeps them.
        n_threads: Threads of one decoder, 0 for as many as it likes.
        limits: Longest time and most memory for this clip.
        video_reader: ``decord`` reads with decord and nothing else. Its frames are wrong for
            streams and edit lists, its colours and shapes are those that are stored.

    Raises:
        NoVideosError: If PyAV is not installed.
        DataError: If there is no such regular file, it holds no readable frame, or reading it goes
            beyond a limit.
    """
    sampling = Uniform(frames) if isinstance(frames, int) else frames
    if find_spec("av") is None:
        raise NoVideosError(f"reading videos needs av, which is not installed. Run: {INSTALL_EVAL}")
    require_reader(video_reader)
    n_bytes = check_file(path)
    try:
        return decoders.DECODERS.read(
            path,
            sampling,
            limits,
            video_reader=video_reader,
            max_pixels=max_pixels,
            n_threads=n_threads,
        )
    except decoders.LimitError as error:
        raise DataError(
            f"expected a video that can be read within limits, {path} ({n_bytes} bytes) is not "
            f"one; {error}"
        ) from error
    except (RefusedError, UnreadableError) as error:
        reason = str(error)
    except (MemoryError, OSError) as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
    raise DataError(
        f"expected a readable video, {path} ({n_bytes} bytes) is not one; {reason}; fetch or "
        "encode the file again"
    )
