"""Frames by PyAV, decoding all of a clip: its readable start where it is cut off or damaged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from loguru import logger

from lmms_eval_captions.model_wrappers.video.clip import Clip, make_clip
from lmms_eval_captions.model_wrappers.video.containers import open_clip, pick_stream
from lmms_eval_captions.model_wrappers.video.frame_pictures import picture, stack
from lmms_eval_captions.model_wrappers.video.frame_times import Stamps, end_of, shown_at
from lmms_eval_captions.model_wrappers.video.reading_errors import UnreadableError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream
    from numpy.typing import NDArray

    from lmms_eval_captions.model_wrappers.video.frame_pictures import Draw
    from lmms_eval_captions.model_wrappers.video.sampling import Sampling

MAY_JUMP: Final = 0x0200
"""FFmpeg's mark (AVFMT_TS_DISCONT) of containers whose clock may start anew in mid-stream."""


@dataclass(frozen=True, slots=True)
class _Timing:
    """How a stream counts time; see :func:`shown_at`."""

    unit_s: float
    step_s: float
    may_jump: bool

    def of(self, stamps: Sequence[Stamps]) -> NDArray[np.float64]:
        """When frames are shown."""
        return shown_at(stamps, unit_s=self.unit_s, step_s=self.step_s, may_jump=self.may_jump)


def read(
    path: Path,
    sampling: Sampling,
    *,
    max_pixels: int | None,
) -> Clip:
    """The chosen among the frames that can be decoded; arguments as of ``read_frames``.

    All frames are decoded, so that their number and times are certain; a second time where the
    packets promised other ones. By one thread: with several, what is put in the place of damaged
    parts depends on their number.

    Raises:
        UnreadableError: If not a single frame can be decoded.
    """
    import av

    draw = partial(picture, max_pixels=max_pixels)
    try:
        with open_clip(path) as container:
            stream = pick_stream(container)
            fps = float(stream.average_rate or 0.0)
            timing = _Timing(
                unit_s=float(stream.time_base or 1.0),
                step_s=1.0 / (fps or 1.0),
                may_jump=bool(container.format.flags & MAY_JUMP),
            )
            packets = [p for p in _readable(container, stream) if p and not p.is_discard]
            promised = sorted(_stamp(packet) for packet in packets)
            last_s = float(max(packets, key=_stamp).duration or 0) * timing.unit_s if packets else 0
        guess = set(sampling.indices(timing.of([(at, None) for at in promised] or [(0, 0)])))
        stamps, pictures = _decode(path, guess, draw)
        if not stamps:
            raise UnreadableError("decoded no frame")
        times_s = timing.of(stamps)
        chosen = sampling.indices(times_s)
        if not pictures.keys() >= set(chosen):
            _, pictures = _decode(path, set(chosen), draw)
    except (av.FFmpegError, ValueError) as error:
        raise UnreadableError(one_line(error)) from error
    frames = [pictures[index] for index in chosen]
    has_clock = fps > 0 or any(stamp is not None for pair in stamps for stamp in pair)
    end_s = end_of(times_s, last_s, fps=fps) if has_clock else None
    return make_clip(stack(frames), times_s[chosen], fps=fps, n_total=len(stamps), end_s=end_s)


def _stamp(packet: Packet) -> int:
    return (packet.dts if packet.pts is None else packet.pts) or 0


def _decode(
    path: Path, keep: set[int], draw: Draw
) -> tuple[list[Stamps], dict[int, NDArray[np.uint8]]]:
    """Time stamps of all frames that can be decoded, and the pictures at some positions."""
    stamps: list[Stamps] = []
    pictures: dict[int, NDArray[np.uint8]] = {}
    for position, frame in enumerate(decodable(path)):
        stamps.append((frame.pts, frame.dts))
        if position in keep:
            pictures[position] = draw(frame)
    return stamps, pictures


def decodable(path: Path, *, n_threads: int = 1) -> Iterator[VideoFrame]:
    """Frames in order; damaged stretches are passed over.

    Args:
        path: Video file.
        n_threads: Threads of the decoder, 0 for as many as it likes.
    """
    import av

    n_damaged = 0
    with open_clip(path) as container:
        stream = pick_stream(container)
        stream.codec_context.thread_count = n_threads
        if n_threads != 1:
            stream.thread_type = "AUTO"
        for packet in _readable(container, stream):
            try:
                yield from stream.codec_context.decode(packet)
            except av.FFmpegError as error:
                if isinstance(error, MemoryError):
                    raise
                n_damaged += 1
    if n_damaged:
        logger.debug("{}: passed over {} damaged packet(s)", path, n_damaged)


def _readable(container: InputContainer, stream: VideoStream) -> Iterator[Packet | None]:
    """Packets as far as they can be read, and then nothing, which asks for frames held back."""
    import av

    try:
        for packet in container.demux(stream):
            if packet.size:
                yield packet
    except av.FFmpegError as error:
        logger.debug("{}: reading stopped early: {}", container.name, one_line(error))
    yield None
