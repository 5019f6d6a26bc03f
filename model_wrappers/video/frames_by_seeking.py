"""Frames by PyAV's seeking: from the key frame before each to its time stamp.

What is in doubt (no time stamps, damage, a frame that is not where its packet says) is left to
decoding from the start.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.model_wrappers.video.clip import Clip, make_clip
from lmms_eval_captions.model_wrappers.video.containers import open_clip, pick_stream
from lmms_eval_captions.model_wrappers.video.frame_pictures import picture, stack
from lmms_eval_captions.model_wrappers.video.frame_times import end_of
from lmms_eval_captions.model_wrappers.video.reading_errors import UnreadableError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

    from lmms_eval_captions.model_wrappers.video.frame_pictures import Draw
    from lmms_eval_captions.model_wrappers.video.sampling import Sampling

_SOUGHT: Final = frozenset({"mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm"})
"""Containers whose packets have the time stamps of the frames in them."""


class DoubtError(Exception):
    """Seeking may not give what decoding all of the clip gives."""


@dataclass(frozen=True, slots=True)
class _Index:
    """Time stamps, in the stream's unit."""

    stamps: list[int]
    """Of every frame that is shown, rising."""
    n_last: int
    """How long the last of them is shown, 0 where the file does not say."""
    starts: list[int]
    """Of the frames that decoding can start from, rising."""


def read(
    path: Path,
    sampling: Sampling,
    *,
    max_pixels: int | None,
    n_threads: int,
) -> Clip:
    """The chosen frames, decoding as little as possible; arguments as of ``read_frames``.

    Raises:
        UnreadableError: If it is not certain that this gives what decoding all of it gives.
    """
    import av

    try:
        with open_clip(path) as container:
            stream = pick_stream(container)
            # Several threads do not say where H.264 is damaged, nor do they mend it.
            is_h264 = stream.codec_context.name == "h264"
            stream.codec_context.thread_count = 1 if is_h264 else n_threads
            draw = partial(picture, max_pixels=max_pixels)
            return _seek(container, stream, sampling, draw)
    except (av.FFmpegError, ValueError, DoubtError) as error:
        raise UnreadableError(one_line(error)) from error


def _index(container: InputContainer, stream: VideoStream) -> _Index:
    """Of every packet, without decoding.

    Raises:
        DoubtError: If there is a packet that does not give one frame at its time stamp, or the
            stream does not begin with its first frame.
    """
    kind = container.format.name
    if kind not in _SOUGHT:
        raise DoubtError(f"time stamps in {kind} are not relied on")
    if kind == "matroska,webm" and stream.codec_context.codec_tag[0] > "\0":
        raise DoubtError("its frames are stored as in AVI")
    shown: list[int] = []
    left_out: list[int] = []
    starts: list[int] = []
    lengths: dict[int, int] = {}
    for packet in container.demux(stream):
        if not packet.size:
            continue
        if packet.pts is None or packet.is_corrupt:
            raise DoubtError("a packet is damaged or has no time stamp")
        if packet.is_keyframe:
            starts.append(packet.pts)
        elif not starts:
            raise DoubtError("its first frame is built on others")
        if packet.is_discard:
            left_out.append(packet.pts)
        else:
            shown.append(packet.pts)
            lengths[packet.pts] = packet.duration or 0
    stamps = sorted(shown)
    _check(stamps, left_out, sorted(starts))
    return _Index(stamps, lengths[stamps[-1]], sorted(starts))


def _check(stamps: list[int], left_out: list[int], starts: list[int]) -> None:
    if not stamps or any(late <= early for early, late in pairwise(stamps)):
        raise DoubtError("two of its packets have one time stamp")
    if min(stamps[0], *left_out, starts[0]) < starts[0]:
        raise DoubtError("frames come before the first")
    if any(stamps[0] < stamp < stamps[-1] for stamp in left_out):
        raise DoubtError("its edit list leaves out frames in mid-stream")


def _seek(container: InputContainer, stream: VideoStream, sampling: Sampling, draw: Draw) -> Clip:
    index = _index(container, stream)
    since_first = [stamp - index.stamps[0] for stamp in index.stamps]
    unit_s, fps = float(stream.time_base or 1.0), float(stream.average_rate or 0.0)
    times_s = np.asarray(since_first, dtype=np.float64) * unit_s
    chosen = sampling.indices(times_s)
    wanted = [index.stamps[position] for position in chosen]
    pictures = {stamp: draw(frame) for stamp, frame in _sought(container, stream, wanted, index)}
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
) -> Iterator[tuple[int, VideoFrame]]:
    """Frames by their time stamps, in order.

    From one wanted frame to the next the decoder jumps over frames that it can start from, and
    leaves out frames that no other frame is built on: about half of what common H.264 holds.
    """
    missing = set(wanted)
    at: int | None = None
    for stamp in wanted:
        if stamp not in missing:
            continue
        start = index.starts[max(0, bisect_right(index.starts, stamp) - 1)]
        packets = container.demux(stream)
        if at is None or start > at:
            packets = _from_start(container, stream, start)
        for packet in packets:
            at = packet.pts if at is None else max(at, packet.pts or at)
            for frame in _decoded(stream, packet, missing):
                missing.discard(frame.pts)
                yield frame.pts, frame
            if stamp not in missing:
                break
        if stamp in missing:
            return


def _from_start(container: InputContainer, stream: VideoStream, start: int) -> Iterator[Packet]:
    container.seek(start, stream=stream)
    packets = container.demux(stream)
    first = next(packets)
    if first.pts != start:
        raise DoubtError("seeking leads elsewhere")
    yield first
    yield from packets


def _decoded(stream: VideoStream, packet: Packet, missing: set[int]) -> Iterator[VideoFrame]:
    """The missing frames among those that come out after a packet."""
    context = stream.codec_context
    # By the standard nothing is built on what H.264 marks as no reference. In HEVC a frame of a
    # higher layer may be.
    if context.name == "h264":
        kept = packet.pts is None or packet.pts in missing
        context.skip_frame = "DEFAULT" if kept else "NONREF"
    for frame in context.decode(packet):
        if frame.is_corrupt or frame.pts is None:
            raise DoubtError("frames are damaged or have no time stamp")
        if frame.pts in missing:
            yield frame
