"""Frames of a clip, sampled evenly over its length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from loguru import logger

from lmms_eval_captions.judges.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """Some frames of a video, and when they are shown."""

    frames: NDArray[np.uint8]
    """Shape (n, height, width, 3), RGB, n >= 1, in order of time."""
    timestamps_s: NDArray[np.float64]
    """Shape (n,), seconds from the first frame of the video."""
    duration_s: float
    """Length of the whole video in seconds; 0 where the file gives no frame rate."""
    fps: float
    """Frames a second of the whole video; 0 where the file does not say."""
    n_total: int
    """Readable frames in the whole video, >= 1."""


def read_frames(path: Path, n_frames: int) -> Clip:
    """Evenly sampled frames of a video, its first and last included.

    decord is tried first because it seeks; PyAV reads what decord cannot, such as the readable
    start of a file that was cut off. A video with fewer frames than asked for gives all of them.

    Args:
        path: Video file.
        n_frames: Most frames to return, >= 1.

    Returns:
        The clip, without repeated frames.

    Raises:
        ValueError: If ``n_frames`` is below 1.
        DataError: If the file is missing or holds no readable frame.
    """
    if n_frames < 1:
        raise ValueError(f"read_frames: expected n_frames of at least 1, got {n_frames!r}")
    if not path.is_file():
        raise DataError(f"expected a video file, found none at {path}; check the data folder")
    clip, decord_reason = _read_with_decord(path, n_frames)
    if clip is None:
        clip, av_reason = _read_with_av(path, n_frames)
        if clip is None:
            raise DataError(
                f"expected a readable video, {path} ({path.stat().st_size} bytes) is not one; "
                f"decord: {decord_reason}; PyAV: {av_reason}; fetch or encode the file again"
            )
    return clip


def frame_indices(n_total: int, n_frames: int) -> list[int]:
    """Positions of evenly spaced frames, first and last included, without repeats.

    >>> frame_indices(217, 4), frame_indices(2, 8), frame_indices(9, 1)
    ([0, 72, 144, 216], [0, 1], [0])
    """
    spaced = np.linspace(0, n_total - 1, min(n_total, n_frames))
    return [int(index) for index in np.round(spaced)]


def _read_with_decord(path: Path, n_frames: int) -> tuple[Clip | None, str]:
    """The clip, or ``None`` and the reason in words."""
    try:
        import decord
    except (ImportError, OSError) as error:  # OSError: its shared library does not load here.
        return None, f"cannot be imported ({error})"
    failures = (
        decord.DECORDError,
        decord.DECORDLimitReachedError,
        RuntimeError,
        ValueError,
        IndexError,
    )
    try:
        reader = decord.VideoReader(str(path), ctx=decord.cpu(0))
        n_total = len(reader)
        if n_total < 1:
            return None, "found no frames"
        indices = frame_indices(n_total, n_frames)
        frames = reader.get_batch(indices).asnumpy()
        timestamps_s = np.asarray(reader.get_frame_timestamp(indices), dtype=np.float64)[:, 0]
        fps = float(reader.get_avg_fps())
    except failures as error:
        return None, _one_line(error)
    return _clip(frames, timestamps_s, fps=fps, n_total=n_total), ""


def _read_with_av(path: Path, n_frames: int) -> tuple[Clip | None, str]:
    """The clip, or ``None`` and the reason in words."""
    import av

    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                return None, "found no video stream"
            rate = container.streams.video[0].average_rate
            # Packets are counted without decoding: the header may not say, or say too much.
            n_packets = sum(packet.size > 0 for packet in container.demux(video=0))
    except (av.FFmpegError, ValueError) as error:
        return None, _one_line(error)
    wanted = frame_indices(n_packets, n_frames) if n_packets else []
    frames, times_s, n_total = _decode(path, wanted)
    if n_total == 0:
        return None, "decoded no frame"
    if n_total != n_packets:
        frames, times_s, n_total = _decode(path, frame_indices(n_total, n_frames))
    timestamps_s = np.asarray(times_s, dtype=np.float64)
    return _clip(np.stack(frames), timestamps_s, fps=float(rate or 0.0), n_total=n_total), ""


def _decode(path: Path, wanted: Sequence[int]) -> tuple[list[NDArray[np.uint8]], list[float], int]:
    """The wanted frames, their seconds from the first frame, and how many frames were readable."""
    import av

    kept: list[NDArray[np.uint8]] = []
    times_s: list[float] = []
    n_readable = 0
    start_s = 0.0
    keep = set(wanted)
    with av.open(str(path)) as container:
        for frame in _readable_frames(container):
            time_s = float(frame.time or 0.0)
            if n_readable == 0:
                start_s = time_s
            if n_readable in keep:
                kept.append(frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False))
                times_s.append(time_s - start_s)
            n_readable += 1
    return kept, times_s, n_readable


def _readable_frames(container: InputContainer) -> Iterator[VideoFrame]:
    """Frames until the end, or until the first that cannot be decoded."""
    import av

    try:
        yield from container.decode(video=0)
    except av.FFmpegError as error:
        logger.debug("{}: decoding stopped early: {}", container.name, _one_line(error))


def _clip(
    frames: NDArray[np.uint8], timestamps_s: NDArray[np.float64], *, fps: float, n_total: int
) -> Clip:
    duration_s = n_total / fps if fps > 0 else 0.0
    return Clip(
        frames=frames, timestamps_s=timestamps_s, duration_s=duration_s, fps=fps, n_total=n_total
    )


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
