"""Frames by PyAV: sought by time stamp where that is exact, else decoded from the start."""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from loguru import logger

from lmms_eval_captions.model_wrappers.video.clip import Clip, make_clip
from lmms_eval_captions.model_wrappers.video.colours import Display, picture, stack
from lmms_eval_captions.model_wrappers.video.containers import (
    UnreadableError,
    open_clip,
    pick_stream,
)
from lmms_eval_captions.model_wrappers.video.frame_times import Stamps, end_of, shown_at
from lmms_eval_captions.model_wrappers.video.pictures import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream
    from numpy.typing import NDArray

    from lmms_eval_captions.model_wrappers.video.sampling import Sampling

_SOUGHT: Final = frozenset({"mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm"})
"""Containers whose packets have the time stamps of the frames in them."""
_NOT_SOUGHT: Final = frozenset({"mpeg4"})
"""Codecs that may hold several pictures in one packet (packed B-frames)."""
_MAY_JUMP: Final = 0x0200
"""FFmpeg's flag (AVFMT_TS_DISCONT) of containers whose clock may restart in mid-stream."""


class DoubtError(Exception):
    """Seeking may not give the frames that decoding the complete clip gives."""


def seek(path: Path, sampling: Sampling, *, max_pixels: int | None, n_threads: int) -> Clip:
    """Read the chosen frames, decoding as little as possible; arguments as in ``read_frames``.

    Raises:
        UnreadableError: If it is not certain that this gives the frames of a full decoding.
    """
    import av

    try:
        with open_clip(path) as container:
            stream = pick_stream(container)
            # Several threads neither report where H.264 is damaged, nor conceal it.
            is_h264 = stream.codec_context.name == "h264"
            stream.codec_context.thread_count = 1 if is_h264 else n_threads
            stamps, n_last, starts = _index(container, stream)
            unit_s, fps = float(stream.time_base or 1.0), float(stream.average_rate or 0.0)
            # Whole numbers first: floats lose digits of late stamps.
            times_s = np.asarray([stamp - stamps[0] for stamp in stamps], np.float64) * unit_s
            chosen = sampling.indices(times_s)
            wanted = [stamps[at] for at in chosen]
            draw = partial(picture, display=Display.of(stream), max_pixels=max_pixels)
            found = {f.pts: draw(f) for f in _sought(container, stream, wanted, starts)}
            return make_clip(
                stack([found[stamp] for stamp in wanted]),
                times_s[chosen],
                fps=fps,
                n_total=len(stamps),
                end_s=end_of(times_s, n_last * unit_s, fps=fps),
            )
    except (av.FFmpegError, ValueError, DoubtError) as error:
        raise UnreadableError(one_line(error)) from error


def decode_all(path: Path, sampling: Sampling, *, max_pixels: int | None) -> Clip:
    """Read the chosen frames by decoding the complete clip; arguments as in ``read_frames``.

    A clip that is cut off or damaged gives its readable frames. It is decoded a second time if its
    packets promised other frames, and by one thread: with several, the concealment of damaged
    parts depends on their number.

    Raises:
        UnreadableError: If not a single frame can be decoded.
    """
    import av

    try:
        with open_clip(path) as container:
            stream = pick_stream(container)
            draw = partial(picture, display=Display.of(stream), max_pixels=max_pixels)
            unit_s, rate = float(stream.time_base or 1.0), float(stream.average_rate or 0.0)
            may_jump = bool(container.format.flags & _MAY_JUMP)
            promised = sorted(
                ((p.dts if p.pts is None else p.pts) or 0, p.duration or 0)
                for p in _readable(container, stream)
                if p and not p.is_discard
            ) or [(0, 0)]
        timed = partial(shown_at, unit_s=unit_s, step_s=1.0 / (rate or 1.0), may_jump=may_jump)

        def read(indices: Sequence[int]) -> tuple[dict[int, NDArray[np.uint8]], list[Stamps]]:
            wanted = set(indices)
            pictures: dict[int, NDArray[np.uint8]] = {}
            stamps: list[Stamps] = []
            for index, frame in enumerate(_frames(path)):
                stamps.append((frame.pts, frame.dts))
                if index in wanted:
                    pictures[index] = draw(frame)
            return pictures, stamps

        pictures, stamps = read(sampling.indices(timed([(at, None) for at, _ in promised])))
        if not stamps:
            raise UnreadableError("decoded no frame")
        times_s = timed(stamps)
        chosen = sampling.indices(times_s)
        if not pictures.keys() >= set(chosen):
            pictures, _ = read(chosen)
    except (av.FFmpegError, ValueError) as error:
        raise UnreadableError(one_line(error)) from error
    has_clock = rate > 0 or any(at is not None for pair in stamps for at in pair)
    return make_clip(
        stack([pictures[index] for index in chosen]),
        times_s[chosen],
        fps=rate,
        n_total=len(stamps),
        end_s=end_of(times_s, promised[-1][1] * unit_s, fps=rate) if has_clock else None,
    )


def _frames(path: Path) -> Iterator[VideoFrame]:
    """Yield frames in the order in which they are shown, skipping damaged stretches."""
    import av

    with open_clip(path) as container:
        stream = pick_stream(container)
        stream.codec_context.thread_count = 1
        for packet in _readable(container, stream):
            try:
                yield from stream.codec_context.decode(packet)
            except av.FFmpegError as error:
                if isinstance(error, MemoryError):
                    raise
                logger.debug("{}: skipped a damaged packet", path)


def _readable(container: InputContainer, stream: VideoStream) -> Iterator[Packet | None]:
    """Yield packets as far as they can be read, then ``None``, which flushes the decoder."""
    import av

    try:
        for packet in container.demux(stream):
            if packet.size:
                yield packet
    except av.FFmpegError as error:
        logger.debug("{}: reading stopped early: {}", container.name, one_line(error))
    yield None


def _index(container: InputContainer, stream: VideoStream) -> tuple[list[int], int, list[int]]:
    """Index every packet, without decoding.

    Returns:
        Time stamps of the shown frames, rising; duration of the last one, 0 if the file does not
        say; time stamps of key frames, rising.

    Raises:
        DoubtError: If a packet may not give one frame at its time stamp, or the stream does not
            begin with its first frame.
    """
    kind, codec = container.format.name, stream.codec_context.name
    if kind not in _SOUGHT or codec in _NOT_SOUGHT:
        raise DoubtError(f"time stamps of {codec} in {kind} are not reliable")
    if kind == "matroska,webm" and stream.codec_context.codec_tag[0] > "\0":
        raise DoubtError("its frames are stored as in AVI")
    packets: list[tuple[int, int, bool, bool]] = []
    for packet in container.demux(stream):
        if packet.size:
            if packet.pts is None or packet.is_corrupt:
                raise DoubtError("a packet is damaged or has no time stamp")
            length = packet.duration or 0
            packets.append((packet.pts, length, packet.is_keyframe, packet.is_discard))
    if not packets or not packets[0][2]:
        raise DoubtError("it does not begin with a key frame")
    starts = sorted(pts for pts, _, is_key, _ in packets if is_key)
    cut = [pts for pts, _, _, is_cut in packets if is_cut]
    shown = {pts: length for pts, length, _, is_cut in packets if not is_cut}
    stamps = sorted(shown)
    if not stamps or len(stamps) + len(cut) < len(packets):
        raise DoubtError("two of its packets have one time stamp")
    if min(stamps[0], *cut, starts[0]) < starts[0]:
        raise DoubtError("frames come before the first key frame")
    if any(stamps[0] < stamp < stamps[-1] for stamp in cut):
        raise DoubtError("its edit list leaves out frames in mid-stream")
    return stamps, shown[stamps[-1]], starts


def _sought(
    container: InputContainer, stream: VideoStream, wanted: Sequence[int], starts: Sequence[int]
) -> Iterator[VideoFrame]:
    """Yield the frames at some time stamps, jumping over key frames in between."""
    missing = set(wanted)
    at: int | None = None
    for stamp in wanted:
        start = starts[max(0, bisect_right(starts, stamp) - 1)]
        packets = container.demux(stream)
        if at is None or start > at:
            packets = _from_key_frame(container, stream, start)
        for packet in packets if stamp in missing else ():
            at = packet.pts if at is None else max(at, packet.pts or at)
            for frame in _decoded(stream, packet, missing):
                missing.discard(frame.pts)
                yield frame
            if stamp not in missing:
                break
        if stamp in missing:
            raise DoubtError(f"{len(missing)} frames are not at their time stamps")


def _from_key_frame(container: InputContainer, stream: VideoStream, start: int) -> Iterator[Packet]:
    container.seek(start, stream=stream)
    packets = container.demux(stream)
    first = next(packets)
    if first.pts != start:
        raise DoubtError("seeking leads elsewhere")
    yield first
    yield from packets


def _decoded(stream: VideoStream, packet: Packet, missing: set[int]) -> Iterator[VideoFrame]:
    """Yield the missing frames among those that a packet completes."""
    context = stream.codec_context
    # By the standard nothing is predicted from what H.264 marks as no reference: about half of
    # common streams. In HEVC a frame of a higher layer may be.
    if context.name == "h264":
        is_kept = packet.pts is None or packet.pts in missing
        context.skip_frame = "DEFAULT" if is_kept else "NONREF"
    for frame in context.decode(packet):
        if frame.is_corrupt or frame.pts is None:
            raise DoubtError("frames are damaged or have no time stamp")
        if frame.pts in missing:
            yield frame
