"""Frames by PyAV: by seeking where time stamps allow it, or from a file's start."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

import numpy as np
from loguru import logger

from lmms_eval_captions.model_wrappers.containers import GIANT, check_size, open_clip
from lmms_eval_captions.model_wrappers.frames import (
    Clip,
    UnreadableError,
    fit,
    make_clip,
    one_line,
    shrunk,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from numpy.typing import NDArray

    from lmms_eval_captions.model_wrappers.sampling import Sampling

_SKIPPABLE: Final = frozenset({"h264", "mpeg4", "mpeg2video"})
"""Decoders whose frames marked as no reference are none by the standard: leaving them out changes
no other frame. Not HEVC, where a frame of a higher layer may still be built on one."""


def read_by_seeking(
    path: Path, sampling: Sampling, *, max_pixels: int | None, n_threads: int
) -> Clip:
    """The chosen frames, decoding as little as possible; arguments as of ``read_frames``.

    Raises:
        UnreadableError: If the file's time stamps do not lead to the chosen frames.
    """
    import av

    try:
        with open_clip(path) as container:
            container.streams.video[0].codec_context.thread_count = n_threads
            return _seek(container, sampling, max_pixels)
    except (av.FFmpegError, ValueError) as error:
        raise UnreadableError(one_line(error)) from error


def read_from_start(path: Path, sampling: Sampling, *, max_pixels: int | None) -> Clip:
    """The chosen among the frames that can be decoded; arguments as of ``read_frames``.

    The file is read twice: for every frame's time, then for the chosen frames.

    Raises:
        UnreadableError: If not a single frame can be decoded.
    """
    import av

    try:
        with open_clip(path) as container:
            fps = float(container.streams.video[0].average_rate or 0.0)
        return _pick(path, sampling, fps=fps, max_pixels=max_pixels)
    except (av.FFmpegError, ValueError) as error:
        raise UnreadableError(one_line(error)) from error


def _stamps(container: InputContainer) -> tuple[list[int], list[int]]:
    """Time stamps of all frames and of key frames, in order; empty where a packet has none.

    Packets are counted without decoding: the header may not say, or say too much.
    """
    import av

    packets: list[tuple[int | None, bool]] = []
    try:
        packets.extend((p.pts, p.is_keyframe) for p in container.demux(video=0) if p.size)
    except av.FFmpegError as error:
        logger.debug("{}: reading stopped early: {}", container.name, one_line(error))
    stamps = sorted(stamp for stamp, _ in packets if stamp is not None)
    if len(set(stamps)) < len(packets):
        return [], []
    return stamps, sorted(stamp for stamp, is_key in packets if is_key and stamp is not None)


def _seek(container: InputContainer, sampling: Sampling, max_pixels: int | None) -> Clip:
    stamps, keys = _stamps(container)
    stream = container.streams.video[0]
    if not stamps or not keys or stream.time_base is None:
        raise UnreadableError("has frames without a time stamp of their own")
    times_s = np.asarray(stamps, dtype=np.float64) * float(stream.time_base)
    times_s -= times_s[0]
    chosen = sampling.indices(times_s)
    wanted = [stamps[index] for index in chosen]
    found: dict[int, NDArray[np.uint8]] = {}
    for stamp, frame in _sought(container, wanted, keys):
        found[stamp] = _picture(frame, max_pixels)
    if len(found) < len(wanted):
        raise UnreadableError(f"{len(wanted) - len(found)} frames are not at their time stamps")
    return make_clip(
        _stack([found[stamp] for stamp in wanted]),
        times_s[chosen],
        fps=float(stream.average_rate or 0.0),
        n_total=len(stamps),
    )


def _sought(
    container: InputContainer, wanted: Sequence[int], keys: Sequence[int]
) -> Iterator[tuple[int, VideoFrame]]:
    """Frames by their time stamps, in order.

    From one wanted frame to the next the decoder jumps over key frames, and leaves out frames that
    no other frame is built on: about half of what common H.264 holds.
    """
    stream = container.streams.video[0]
    context = stream.codec_context
    skips = context.name in _SKIPPABLE
    missing = set(wanted)
    at: int | None = None
    for stamp in wanted:
        if stamp not in missing:
            continue
        key = keys[max(0, bisect_right(keys, stamp) - 1)]
        if at is None or key > at:
            container.seek(key, stream=stream)
        for packet in container.demux(stream):
            at = packet.pts if at is None else max(at, packet.pts or at)
            if skips:
                kept = packet.pts is None or packet.pts in missing
                context.skip_frame = "DEFAULT" if kept else "NONREF"
            for frame in context.decode(packet):
                if frame.pts in missing:
                    missing.discard(frame.pts)
                    yield frame.pts, frame
            if stamp not in missing:
                break
        if stamp in missing:
            return


def _pick(path: Path, sampling: Sampling, *, fps: float, max_pixels: int | None) -> Clip:
    times = [frame.time for frame in _decodable(path)]
    if not times:
        raise UnreadableError("decoded no frame")
    if any(time is None for time in times):
        stamps = np.arange(len(times)) / (fps or 1.0)
    else:
        stamps = np.asarray(times, dtype=np.float64)
    times_s = np.maximum.accumulate(stamps - stamps[0])
    chosen = sampling.indices(times_s)
    keep = set(chosen)
    frames = [
        _picture(frame, max_pixels) for index, frame in enumerate(_decodable(path)) if index in keep
    ]
    return make_clip(_stack(frames), times_s[chosen], fps=fps, n_total=len(times))


def _decodable(path: Path) -> Iterator[VideoFrame]:
    """Frames in order; damaged stretches are passed over."""
    import av

    with open_clip(path) as container:
        packets = container.demux(video=0)
        n_damaged = 0
        while True:
            try:
                packet = next(packets)
            except StopIteration:
                break
            except av.FFmpegError as error:
                logger.debug("{}: reading stopped early: {}", path, one_line(error))
                break
            try:
                yield from container.streams.video[0].codec_context.decode(packet)
            except av.FFmpegError:
                n_damaged += 1
        if n_damaged:
            logger.debug("{}: passed over {} damaged packet(s)", path, n_damaged)


def _picture(frame: VideoFrame, max_pixels: int | None) -> NDArray[np.uint8]:
    """RGB, the right way up."""
    check_size(frame.width, frame.height)
    turns = round(float(getattr(frame, "rotation", 0) or 0) / 90)
    if max_pixels is not None and frame.width * frame.height > max(GIANT, max_pixels):
        # Never whole as RGB, which can be twice the size of what was decoded.
        width, height = shrunk(frame.width, frame.height, max_pixels)
        frame = frame.reformat(width, height, format="rgb24", interpolation="AREA")
    pixels = fit(frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False), max_pixels)
    return np.ascontiguousarray(np.rot90(pixels, turns)) if turns % 4 else pixels


def _stack(frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Frames of one size; a stream that changes its size keeps that of its first frame."""
    height, width = frames[0].shape[:2]
    if all(frame.shape == frames[0].shape for frame in frames):
        return np.stack(frames)
    import cv2

    return np.stack(
        [np.asarray(cv2.resize(frame, (width, height)), dtype=np.uint8) for frame in frames]
    )
