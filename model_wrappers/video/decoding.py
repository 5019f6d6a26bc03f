"""Frames by PyAV: sought by time stamp where that is exact, else decoded from the start."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
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
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream
    from numpy.typing import NDArray

    from lmms_eval_captions.model_wrappers.video.sampling import Sampling

    Draw = Callable[[VideoFrame], NDArray[np.uint8]]

_SOUGHT: Final = frozenset({"mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm"})
"""Containers whose packets have the time stamps of the frames in them."""
_NOT_SOUGHT: Final = frozenset({"mpeg4"})
"""Codecs that may hold several pictures in one packet (packed B-frames)."""
_MAY_JUMP: Final = 0x0200
"""FFmpeg's flag (AVFMT_TS_DISCONT) of containers whose clock may restart in mid-stream."""


class DoubtError(Exception):
    """Seeking may not give the frames that decoding the complete clip gives."""


@dataclass(frozen=True, slots=True)
class _Index:
    """Time stamps, in the stream's unit."""

    stamps: list[int]
    """One per shown frame, rising."""
    n_last: int
    """Duration of the last frame, 0 if the file does not say."""
    starts: list[int]
    """Key frames, rising."""


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
            index = _index(container, stream)
            draw = partial(picture, display=Display.of(stream), max_pixels=max_pixels)
            return _sought_clip(container, stream, index, sampling, draw)
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

    frames = TimedFrames(path, n_threads=1)
    try:
        promised, last_s = _promised(path)
        guess = sampling.indices(frames.timed([(at, None) for at in promised] or [(0, 0)]))
        pictures = _pictures(frames, set(guess), max_pixels)
        if not frames.stamps:
            raise UnreadableError("decoded no frame")
        times_s = frames.times_s()
        chosen = sampling.indices(times_s)
        if not pictures.keys() >= set(chosen):
            pictures = _pictures(frames, set(chosen), max_pixels)
    except (av.FFmpegError, ValueError) as error:
        raise UnreadableError(one_line(error)) from error
    has_clock = frames.rate > 0 or any(at is not None for pair in frames.stamps for at in pair)
    return make_clip(
        stack([pictures[index] for index in chosen]),
        times_s[chosen],
        fps=frames.rate,
        n_total=len(frames.stamps),
        end_s=end_of(times_s, last_s, fps=frames.rate) if has_clock else None,
    )


class TimedFrames:
    """All frames of a video that can be decoded, and when each is shown.

    Args:
        path: Video file.
        n_threads: Threads of the decoder, 0 for as many as it likes.

    Raises:
        RefusedError: If the file is no container of pictures that can be decoded.
    """

    def __init__(self, path: Path, *, n_threads: int = 0) -> None:
        self._path = path
        self._n_threads = n_threads
        self.stamps: list[Stamps] = []
        """Time stamps of the frames so far."""
        with open_clip(path) as container:
            stream = pick_stream(container)
            self._may_jump = bool(container.format.flags & _MAY_JUMP)
            self.display = Display.of(stream)
            self.unit_s = float(stream.time_base or 1.0)
            """Seconds of one unit of the frames' stamps."""
            self.rate = float(stream.average_rate or 0.0)
            """Frames a second by the file, 0 if it does not say."""

    @property
    def fps(self) -> float:
        """Frames a second by the file; 25 if it does not say."""
        return self.rate or 25.0

    def __iter__(self) -> Iterator[VideoFrame]:
        """Yield frames in the order in which they are shown, skipping damaged stretches."""
        import av

        self.stamps = []
        n_damaged = 0
        with open_clip(self._path) as container:
            stream = pick_stream(container)
            stream.codec_context.thread_count = self._n_threads
            if self._n_threads != 1:
                stream.thread_type = "AUTO"
            for packet in _readable(container, stream):
                try:
                    decoded = stream.codec_context.decode(packet)
                except av.FFmpegError as error:
                    if isinstance(error, MemoryError):
                        raise
                    n_damaged += 1
                    continue
                for frame in decoded:
                    self.stamps.append((frame.pts, frame.dts))
                    yield frame
        if n_damaged:
            logger.debug("{}: skipped {} damaged packet(s)", self._path, n_damaged)

    def picture(self, frame: VideoFrame, max_pixels: int | None = None) -> NDArray[np.uint8]:
        """Return a frame as players show it; see :func:`.colours.picture`."""
        return picture(frame, self.display, max_pixels)

    def times_s(self) -> NDArray[np.float64]:
        """Return when the frames so far are shown, in seconds from the first."""
        return self.timed(self.stamps) if self.stamps else np.zeros(0)

    def timed(self, stamps: Sequence[Stamps]) -> NDArray[np.float64]:
        """Return when frames with these time stamps are shown, in seconds from the first."""
        step_s = 1.0 / (self.rate or 1.0)
        return shown_at(stamps, unit_s=self.unit_s, step_s=step_s, may_jump=self._may_jump)


def _pictures(
    frames: TimedFrames, wanted: set[int], max_pixels: int | None
) -> dict[int, NDArray[np.uint8]]:
    return {
        index: frames.picture(frame, max_pixels)
        for index, frame in enumerate(frames)
        if index in wanted
    }


def _promised(path: Path) -> tuple[list[int], float]:
    """Return the packets' time stamps, rising, and the last one's duration in seconds."""
    with open_clip(path) as container:
        stream = pick_stream(container)
        packets = [p for p in _readable(container, stream) if p and not p.is_discard]
        last = max(packets, key=_stamp, default=None)
        last_s = float((last and last.duration) or 0) * float(stream.time_base or 1.0)
        return sorted(map(_stamp, packets)), last_s


def _stamp(packet: Packet) -> int:
    return (packet.dts if packet.pts is None else packet.pts) or 0


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


def _index(container: InputContainer, stream: VideoStream) -> _Index:
    """Index every packet, without decoding.

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
    return _Index(stamps, shown[stamps[-1]], starts)


def _sought_clip(
    container: InputContainer, stream: VideoStream, index: _Index, sampling: Sampling, draw: Draw
) -> Clip:
    # Whole numbers first: floats lose digits of late stamps.
    since_first = [stamp - index.stamps[0] for stamp in index.stamps]
    unit_s, fps = float(stream.time_base or 1.0), float(stream.average_rate or 0.0)
    times_s = np.asarray(since_first, dtype=np.float64) * unit_s
    chosen = sampling.indices(times_s)
    wanted = [index.stamps[at] for at in chosen]
    pictures = {frame.pts: draw(frame) for frame in _sought(container, stream, wanted, index)}
    if len(pictures) < len(wanted):
        raise DoubtError(f"{len(wanted) - len(pictures)} frames are not at their time stamps")
    return make_clip(
        stack([pictures[stamp] for stamp in wanted]),
        times_s[chosen],
        fps=fps,
        n_total=len(index.stamps),
        end_s=end_of(times_s, index.n_last * unit_s, fps=fps),
    )


def _sought(
    container: InputContainer, stream: VideoStream, wanted: Sequence[int], index: _Index
) -> Iterator[VideoFrame]:
    """Yield the frames at some time stamps, jumping over key frames in between."""
    missing = set(wanted)
    at: int | None = None
    for stamp in wanted:
        start = index.starts[max(0, bisect_right(index.starts, stamp) - 1)]
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
            return


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
