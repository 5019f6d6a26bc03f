"""Frames by PyAV: sought by time stamp where that is exact, else decoded from the start."""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from itertools import pairwise
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
Stamps = tuple[int | None, int | None]
"""Time stamps of a frame, and of the packet after which it came out, if there are any."""
_JUMP_S: Final = 10.0
"""A longer step forwards in a broadcast stream is a new clock (``-dts_delta_threshold``)."""
_BACK_S: Final = 1.0
"""A longer step backwards is a new clock, too."""
_MOST_BAD: Final = 0.2
"""Share of frames' own stamps that may be missing or out of order before packets' count."""


def seek(path: Path, sampling: Sampling, *, max_pixels: int | None, n_threads: int) -> Clip:
    """Read the chosen frames, decoding as little as possible; arguments as in ``read_frames``.

    Raises ``UnreadableError`` if it is not certain that this gives the frames of a full decoding.
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
    except (av.FFmpegError, ValueError) as error:
        raise UnreadableError(one_line(error)) from error


def decode_all(path: Path, sampling: Sampling, *, max_pixels: int | None) -> Clip:
    """Read the chosen frames by decoding the complete clip; arguments as in ``read_frames``.

    A clip that is cut off or damaged gives its readable frames. It is decoded a second time if its
    packets promised other frames, and by one thread: with several, the concealment of damaged
    parts depends on their number.
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

    is_open = True
    while is_open:
        try:
            for packet in container.demux(stream):
                if packet.size:
                    yield packet
            is_open = False
        except IndexError:
            # Of PyAV 15, at a packet of a stream that begins in mid-file: damage makes such ones.
            logger.debug("{}: skipped a packet of an unknown stream", container.name)
        except av.FFmpegError as error:
            logger.debug("{}: reading stopped early: {}", container.name, one_line(error))
            is_open = False
    yield None


def _index(container: InputContainer, stream: VideoStream) -> tuple[list[int], int, list[int]]:
    """Index every packet, without decoding.

    Return the time stamps of the shown frames, rising; the duration of the last one, 0 if the file
    does not say; the time stamps of key frames, rising. In doubt if a packet may not give one frame
    at its time stamp, or the stream does not begin with its first frame.
    """
    kind, codec = container.format.name, stream.codec_context.name
    if kind not in _SOUGHT or codec in _NOT_SOUGHT:
        raise UnreadableError(f"time stamps of {codec} in {kind} are not reliable")
    if kind == "matroska,webm" and stream.codec_context.codec_tag[0] > "\0":
        raise UnreadableError("its frames are stored as in AVI")
    packets: list[tuple[int, int, bool, bool]] = []
    for packet in container.demux(stream):
        if packet.size:
            if packet.pts is None or packet.is_corrupt:
                raise UnreadableError("a packet is damaged or has no time stamp")
            length = packet.duration or 0
            packets.append((packet.pts, length, packet.is_keyframe, packet.is_discard))
    if not packets or not packets[0][2]:
        raise UnreadableError("it does not begin with a key frame")
    starts = sorted(pts for pts, _, is_key, _ in packets if is_key)
    cut = [pts for pts, _, _, is_cut in packets if is_cut]
    shown = {pts: length for pts, length, _, is_cut in packets if not is_cut}
    stamps = sorted(shown)
    if not stamps or len(stamps) + len(cut) < len(packets):
        raise UnreadableError("two of its packets have one time stamp")
    if min(stamps[0], *cut, starts[0]) < starts[0]:
        raise UnreadableError("frames come before the first key frame")
    if any(stamps[0] < stamp < stamps[-1] for stamp in cut):
        raise UnreadableError("its edit list leaves out frames in mid-stream")
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
            raise UnreadableError(f"{len(missing)} frames are not at their time stamps")


def _from_key_frame(container: InputContainer, stream: VideoStream, start: int) -> Iterator[Packet]:
    container.seek(start, stream=stream)
    packets = container.demux(stream)
    first = next(packets)
    if first.pts != start:
        raise UnreadableError("seeking leads elsewhere")
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
            raise UnreadableError("frames are damaged or have no time stamp")
        if frame.pts in missing:
            yield frame


def shown_at(
    stamps: Sequence[Stamps], *, unit_s: float, step_s: float, may_jump: bool
) -> NDArray[np.float64]:
    """Return when each frame is shown, in seconds from the first, never falling.

    Frames' own stamps count unless those of packets are in better order, as where AVI holds packed
    pictures. A stamp that is missing, or not later than those before it, is made up: frames in
    between stand a step apart, or closer if the next good stamp comes sooner. The clock of a
    container such as MPEG-TS ``may_jump``.

    >>> shown_at([(0, 0), (2, 1), (None, None)], unit_s=0.5, step_s=0.25, may_jump=False)
    array([0.  , 1.  , 1.25])
    """
    own, packets = ([pair[kind] for pair in stamps] for kind in (0, 1))
    n_bad, n_bad_packets = _n_bad(own), _n_bad(packets)
    known = [stamp for stamp in own if stamp is not None]
    # AVI numbers frames as they are stored: with H.264 in it few are shown in another order.
    falls = any(late < early for early, late in pairwise(known))
    is_stored_order = not may_jump and not n_bad_packets and falls
    # Packets' own are those of decoding: they count if frames have no stamps, not if a few of them
    # are rounded to the same moment.
    is_own_good = n_bad <= _MOST_BAD * len(own) and not is_stored_order
    is_alone = packets.count(None) == len(packets)
    raw = own if is_own_good or is_alone or n_bad <= n_bad_packets else packets
    # Counted from the first as whole numbers: cut Ogg has stamps of which floats lose the digits.
    base = next((stamp for stamp in raw if stamp is not None), 0)
    times_s = np.zeros(len(raw), dtype=np.float64)
    offset_s: float | None = None
    last = 0
    for index, stamp in enumerate(raw):
        if stamp is None:
            continue
        n_steps = index - last
        time_s = (stamp - base) * unit_s + (offset_s or 0.0)
        expected_s, gone_s = times_s[last] + step_s * n_steps, time_s - times_s[last]
        # Frames without stamps lie between, for which there is no room: the clock went back.
        is_crowded = n_steps > 1 and gone_s < step_s * n_steps / 2
        is_new_clock = may_jump and (is_crowded or not -_BACK_S <= gone_s <= _JUMP_S)
        if offset_s is None or is_new_clock:
            offset_s = (offset_s or 0.0) + expected_s - time_s
            time_s = expected_s
        elif gone_s <= 0:
            continue
        own_step_s = min(step_s, (time_s - times_s[last]) / max(1, n_steps))
        times_s[last:index] = times_s[last] + own_step_s * np.arange(n_steps)
        times_s[index] = time_s
        last = index
    times_s[last:] = times_s[last] + step_s * np.arange(len(raw) - last)
    return times_s


def end_of(times_s: NDArray[np.float64], last_s: float, *, fps: float) -> float | None:
    """Return when a clip's last frame ends, in seconds from its first; ``None`` without a clock.

    ``last_s`` is the duration of the last one by the file, 0 for none; next to nothing counts as
    the duration of the one before. The rate counts for a clip of one frame.

    >>> end_of(np.array([0.0, 1.0, 3.0]), 0.5, fps=25), end_of(np.array([0.0, 2.0]), 0, fps=25)
    (3.5, 4.0)
    """
    steps_s = np.diff(times_s)
    steps_s = steps_s[steps_s > 0]
    # The last packet of fragmented MP4 is said to last for one tick of the clock.
    if last_s <= 0 or (len(steps_s) and last_s < steps_s.min() / 2):
        last_s = float(steps_s[-1]) if len(steps_s) else 1 / fps if fps > 0 else 0.0
    return float(times_s[-1]) + last_s or None


def _n_bad(stamps: Sequence[int | None]) -> int:
    """Count stamps that are missing, or not later than the one before."""
    last: int | None = None
    n_bad = 0
    n_known = max((n for n, stamp in enumerate(stamps, 1) if stamp is not None), default=0)
    for stamp in stamps[:n_known]:
        n_bad += stamp is None or (last is not None and stamp <= last)
        last = stamp if stamp is not None else last
    return n_bad
