"""RGB pictures of decoded frames: true colours, upright, in the displayed shape, small enough."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from lmms_eval_captions.model_wrappers.video.containers import GIANT, check_size
from lmms_eval_captions.model_wrappers.video.pictures import fit, shrunk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from av.sidedata.sidedata import SideDataContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_LIMITED_RANGE, _FULL_RANGE = 1, 2
_UNSPECIFIED, _BT601, _FCC = 2, 5, 4
_PQ, _HLG = 16, 18
_BT2020: Final = 9
"""FFmpeg's numbers of ranges, matrices, transfers and primaries (AVCOL_*)."""
_TO_BT709: Final = {
    _BT2020: ((1.6605, -0.5876, -0.0728), (-0.1246, 1.1329, -0.0083), (-0.0182, -0.1006, 1.1187)),
    12: ((1.2249, -0.2249, 0.0), (-0.0421, 1.0421, 0.0), (-0.0196, -0.0786, 1.0983)),
}
"""Linear RGB to that of BT.709, by wide primaries: BT.2020, and P3 with white D65."""
_WHITE_NITS, _PEAK_NITS = 203.0, 1000.0
"""Reference white (BT.2408) and the peak that phones and graders aim at."""
_GAMMA: Final = 2.2
_ODDEST_PIXEL: Final = 10.0
"""Pixels that claim to be longer than this in one direction are taken for square."""


@dataclass(frozen=True, slots=True)
class Display:
    """Display settings of a stream that PyAV does not repeat on its frames."""

    aspect: float = 1.0
    """Width of a pixel, in heights of one."""
    transfer: int = _UNSPECIFIED
    primaries: int = _UNSPECIFIED

    @classmethod
    def of(cls, stream: VideoStream) -> Display:
        """Return the settings of an opened stream; the container wins over the codec."""
        context = stream.codec_context
        aspect = float(stream.sample_aspect_ratio or context.sample_aspect_ratio or 1)
        is_sane = 1 / _ODDEST_PIXEL <= aspect <= _ODDEST_PIXEL
        return cls(aspect if is_sane else 1.0, context.color_trc, context.color_primaries)

    def size(self, frame: VideoFrame) -> tuple[int, int]:
        """Return a frame's width and height in square pixels, before it is turned."""
        if self.aspect >= 1:
            return round(frame.width * self.aspect), frame.height
        return frame.width, round(frame.height / self.aspect)

    @property
    def is_wide(self) -> bool:
        """True for HDR and for primaries beyond BT.709's."""
        return self.transfer in (_PQ, _HLG) or self.primaries in _TO_BT709


def picture(frame: VideoFrame, display: Display, max_pixels: int | None) -> NDArray[np.uint8]:
    """Return a decoded frame as players show it, shape (height, width, 3), RGB.

    HDR (PQ, HLG) is tone-mapped to BT.709, wide primaries are converted, pixels become square.
    Larger frames are shrunk to ``max_pixels``, ``None`` for any.
    """
    width, height = display.size(frame)
    check_size(width, height)
    interpolation = "BICUBIC"
    if max_pixels is not None and width * height > max(GIANT, max_pixels):
        # Never complete as RGB, which can be twice the size of what was decoded.
        (width, height), interpolation = shrunk(width, height, max_pixels), "AREA"
    kind = "rgb48le" if display.is_wide else "rgb24"
    pixels = fit(_converted(frame, kind, (width, height), interpolation), max_pixels)
    if display.is_wide:
        pixels = _to_bt709(pixels, display)
    is_turned, steps = _orientation(frame)
    if is_turned:
        pixels = pixels.transpose(1, 0, 2)
    return np.ascontiguousarray(pixels[:: steps[0], :: steps[1]])


def stack(frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Stack frames of one size; a stream that changes its size keeps that of its first frame."""
    height, width = frames[0].shape[:2]
    if all(frame.shape == frames[0].shape for frame in frames):
        return np.stack(frames)
    import cv2

    return np.stack(
        [np.asarray(cv2.resize(frame, (width, height)), dtype=np.uint8) for frame in frames]
    )


def _converted(
    frame: VideoFrame, kind: str, size: tuple[int, int], interpolation: str
) -> NDArray[Any]:
    """Convert by the matrix and range that the frame names; PyAV alone takes BT.601's for all."""
    own = frame.format
    colours: dict[str, int] = {}
    if not (own.is_rgb or own.has_palette or own.is_bayer):
        matrix = _BT601 if frame.colorspace == _UNSPECIFIED else frame.colorspace
        is_full = (
            own.name.startswith("yuvj")
            or frame.color_range == _FULL_RANGE
            or (not frame.color_range and own.name.startswith(("gray", "ya")))
        )
        colours = {
            "src_colorspace": matrix,
            # RGB has no matrix; PyAV looks at the frame's own only where the two differ.
            "dst_colorspace": _FCC if matrix == _BT601 else _BT601,
            "src_color_range": _FULL_RANGE if is_full else _LIMITED_RANGE,
            "dst_color_range": _FULL_RANGE,
        }
    rgb = frame.reformat(*size, format=kind, interpolation=interpolation, **colours)
    return np.asarray(rgb.to_ndarray())


def _to_bt709(pixels: NDArray[np.uint16], display: Display) -> NDArray[np.uint8]:
    """Convert 16-bit RGB of any transfer and primaries to that of an SDR display.

    Source:
        BT.2100 (PQ, HLG), BT.2390 section 5.4.1 (tone mapping), BT.2408 (reference white).
    """
    is_hdr = display.transfer in (_PQ, _HLG)
    light = _linear(display.transfer)[pixels >> 4]
    if display.transfer == _HLG:
        luminance = light @ np.array([0.2627, 0.6780, 0.0593], np.float32)
        light *= (np.maximum(luminance, 1e-6) ** 0.2 * (_PEAK_NITS / _WHITE_NITS))[..., None]
    primaries = _BT2020 if is_hdr and display.primaries not in _TO_BT709 else display.primaries
    if primaries in _TO_BT709:
        light = light @ np.array(_TO_BT709[primaries], np.float32).T
    light = np.maximum(light, 0)
    if is_hdr:
        brightest = np.maximum(light.max(axis=-1, keepdims=True), 1e-6)
        # By the brightest channel, so that hues stay.
        light *= np.interp(brightest, *_tone_curve()).astype(np.float32) / brightest
    levels = np.minimum(light, 1) ** np.float32(1 / _GAMMA) * 255
    return np.asarray(np.rint(levels), dtype=np.uint8)


@lru_cache(maxsize=8)
def _linear(transfer: int) -> Floats:
    """Return the light of 4,096 code values: in reference whites for PQ, else of the scene."""
    code = np.linspace(0, 1, 4096)
    if transfer == _PQ:
        light = _pq_nits(code) / _WHITE_NITS
    elif transfer == _HLG:
        a, b, c = 0.17883277, 0.28466892, 0.55991073
        light = np.where(code <= 0.5, code**2 / 3, (np.exp((code - c) / a) + b) / 12)
    else:
        light = code**_GAMMA
    return np.asarray(light, dtype=np.float32)


@lru_cache(maxsize=1)
def _tone_curve() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return BT.2390's curve from HDR to SDR, both in reference whites."""
    nits = np.geomspace(0.01, _PEAK_NITS, 1024)
    peak, white = _pq_code(np.array([_PEAK_NITS, _WHITE_NITS]))
    code, most = _pq_code(nits) / peak, white / peak
    knee = 1.5 * most - 0.5
    t = np.maximum((code - knee) / (1 - knee), 0)
    spline = (
        (2 * t**3 - 3 * t**2 + 1) * knee
        + (t**3 - 2 * t**2 + t) * (1 - knee)
        + (-2 * t**3 + 3 * t**2) * most
    )
    mapped = _pq_nits(np.where(code < knee, code, spline) * peak)
    return np.append(0, nits / _WHITE_NITS), np.append(0, mapped / _WHITE_NITS)


_M1, _M2 = 2610 / 16384, 2523 / 32
_C1, _C2, _C3 = 3424 / 4096, 2413 / 128, 2392 / 128


def _pq_nits(code: NDArray[np.float64]) -> NDArray[np.float64]:
    power = code ** (1 / _M2)
    return np.asarray(10_000 * (np.maximum(power - _C1, 0) / (_C2 - _C3 * power)) ** (1 / _M1))


def _pq_code(nits: NDArray[np.float64]) -> NDArray[np.float64]:
    power = (nits / 10_000) ** _M1
    return np.asarray(((_C1 + _C2 * power) / (1 + _C3 * power)) ** _M2)


def _orientation(frame: VideoFrame) -> tuple[bool, tuple[int, int]]:
    """Return if rows are shown as columns, and then the steps (1 or -1) over rows and columns."""
    matrix = _side_data(frame).get("DISPLAYMATRIX")
    if matrix is None:
        return False, (1, 1)
    # (x, y) goes to (a x + c y, b x + d y); turns that are not quarters count as the nearest.
    a, b, _, c, d = np.frombuffer(memoryview(cast("bytes", matrix)), dtype=np.int32)[:5].tolist()
    is_turned = abs(b) > abs(a)
    if is_turned:
        a, d = c, b
    return is_turned, (-1 if d < 0 else 1, -1 if a < 0 else 1)


def _side_data(frame: VideoFrame) -> SideDataContainer:
    """Return a frame's side data.

    ``frame.side_data`` is a reference cycle. Until it is collected, frames would keep their
    memory, and with it affect what decoders put in the place of damaged parts.
    """
    from av.sidedata.sidedata import SideDataContainer

    return SideDataContainer(frame)  # type: ignore[call-arg]  # PyAV's stub leaves __init__ out
