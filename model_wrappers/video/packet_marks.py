"""What a packet of compressed video holds, read from its headers without decoding.

Frames may be sought by the time stamps of packets only where each packet is known to give one
frame, and where decoding is known to be able to start. A container's own marks do not tell: key
frames may be marked that decoding cannot start from (open groups, intra refresh), and packets may
hold no shown frame, two, or half of one. What is not provably plain is in doubt, and is decoded
from the start.

Sources: VP9 bitstream specification 0.6, 6.2 and annex B; AV1 bitstream specification, 5.3 and 5.9;
``packet_h264`` and ``packet_hevc`` name those of H.264 and HEVC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import Final

from lmms_eval_captions.model_wrappers.video.packet_bits import Bits, DoubtError, Mark, Reader
from lmms_eval_captions.model_wrappers.video.packet_h264 import H264
from lmms_eval_captions.model_wrappers.video.packet_hevc import Hevc


def marks_of(codec: str, extradata: bytes | None) -> Reader:
    """The reader for a stream.

    Args:
        codec: FFmpeg's name of it.
        extradata: Of the stream, as MP4 and Matroska store it.

    Raises:
        DoubtError: If frames of such a stream cannot be told from its packets.
    """
    make = _READERS.get(codec)
    if make is None:
        raise DoubtError(f"packets of {codec} are not looked into")
    try:
        read = make(extradata or b"")
    except IndexError as error:
        raise DoubtError("its parameters are cut off") from error

    def read_whole(packet: bytes) -> Mark:
        try:
            return read(packet)
        except IndexError as error:
            raise DoubtError("a header is cut off") from error

    return read_whole


def _vp9(_extradata: bytes) -> Reader:
    numbers = count()

    def read(packet: bytes) -> Mark:
        n_shown, starts = 0, None
        for frame in _vp9_frames(packet):
            bits = Bits(frame[:2])
            if bits.take(2) != 2:
                raise DoubtError("a packet holds no frame of VP9")
            if bits.take(1) + 2 * bits.take(1) == 3:
                bits.take(1)
            repeats = bits.take(1)
            is_key = not repeats and not bits.take(1)
            n_shown += 1 if repeats else bits.take(1)
            starts = is_key if starts is None else starts
        return _mark(n_shown, starts=bool(starts), number=next(numbers))

    return read


def _vp9_frames(packet: bytes) -> Iterator[bytes]:
    last = packet[-1]
    n_frames, n_bytes = (last & 7) + 1, ((last >> 3) & 3) + 1
    n_index = 2 + n_frames * n_bytes
    if last & 0xE0 != 0xC0 or len(packet) < n_index or packet[-n_index] != last:
        yield packet
        return
    at, sizes = 0, packet[-n_index + 1 : -1]
    for place in range(0, len(sizes), n_bytes):
        size = int.from_bytes(sizes[place : place + n_bytes], "little")
        if size:
            yield packet[at : at + size]
        at += size


def _av1(_extradata: bytes) -> Reader:
    numbers = count()

    def read(packet: bytes) -> Mark:
        n_shown, starts, has_parameters = 0, None, False
        for kind, unit in _obus(packet):
            if kind == 1:
                has_parameters = True
                if unit[0] & 8:  # reduced_still_picture_header
                    raise DoubtError("its AV1 is a still")
            elif kind in (3, 6):
                bits = Bits(unit[:1])
                repeats = bits.take(1)
                is_key = not repeats and bits.take(2) == 0
                is_shown = 1 if repeats else bits.take(1)
                n_shown += is_shown
                starts = is_key and bool(is_shown) if starts is None else starts
        return _mark(n_shown, starts=bool(starts) and has_parameters, number=next(numbers))

    return read


def _obus(packet: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(packet):
        header = packet[at]
        at += 2 if header & 4 else 1
        size = len(packet) - at
        if header & 2:
            size = shift = 0
            while True:
                byte = packet[at] if at < len(packet) else 0
                at += 1
                size |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
        if not 0 <= size <= len(packet) - at:
            raise DoubtError("a unit of AV1 has an impossible length")
        if size:
            yield (header >> 3) & 15, packet[at : at + size]
        at += size


def _mark(n_shown: int, *, starts: bool, number: int) -> Mark:
    if n_shown > 1:
        raise DoubtError(f"a packet shows {n_shown} frames")
    return Mark(n_shown, starts, (number, 0))


_READERS: Final[Mapping[str, Callable[[bytes], Reader]]] = MappingProxyType(
    {
        "h264": H264,
        "hevc": Hevc,
        "vp9": _vp9,
        "av1": _av1,
    }
)
