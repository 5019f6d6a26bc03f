"""From a decoded frame to RGB: its own colours, the right way up, and small enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from lmms_eval_captions.model_wrappers.video.containers import GIANT, check_size
from lmms_eval_captions.model_wrappers.video.resizing import fit, shrunk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from av.sidedata.sidedata import SideDataContainer
    from av.video.frame import VideoFrame
    from numpy.typing import NDArray

    Draw = Callable[[VideoFrame], NDArray[np.uint8]]

_LIMITED_RANGE, _FULL_RANGE = 1, 2
_UNSPECIFIED, _BT601, _FCC = 2, 5, 4
"""FFmpeg's numbers of ranges and of matrices (AVCOL_RANGE, AVCOL_SPC)."""


def picture(frame: VideoFrame, max_pixels: int | None) -> NDArray[np.uint8]:
    """A frame, shape (height, width, 3), RGB, the right way up, of at most so many pixels."""
    check_size(frame.width, frame.height)
    is_turned, steps = _orientation(frame)
    size, interpolation = _size(frame, max_pixels)
    pixels = fit(_rgb(frame, size, interpolation), max_pixels)
    if is_turned:
        pixels = pixels.transpose(1, 0, 2)
    return np.ascontiguousarray(pixels[:: steps[0], :: steps[1]])


def _orientation(frame: VideoFrame) -> tuple[bool, tuple[int, int]]:
    """Whether rows are shown as columns, and then the steps (1 or -1) over rows and columns."""
    matrix = _side_data(frame).get("DISPLAYMATRIX")
    if matrix is None:
        return False, (1, 1)
    # (x, y) goes to (a x + c y, b x + d y); turns that are not quarters count as the nearest.
    a, b, _, c, d = np.frombuffer(memoryview(cast("bytes", matrix)), dtype=np.int32)[:5].tolist()
    is_turned = abs(b) > abs(a)
    if is_turned:
        a, d = c, b
    return is_turned, (-1 if d < 0 else 1, -1 if a < 0 else 1)


def _size(frame: VideoFrame, max_pixels: int | None) -> tuple[tuple[int, int], str]:
    """Width and height, not yet turned, to which a frame is scaled as it becomes RGB, and how."""
    width, height = whole = frame.width, frame.height
    if max_pixels is not None and width * height > max(GIANT, max_pixels):
        # Never whole as RGB, which can be twice the size of what was decoded.
        return shrunk(width, height, max_pixels), "AREA"
    return whole, "BICUBIC"


def stack(frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Frames of one size; a stream that changes its size keeps that of its first frame."""
    height, width = frames[0].shape[:2]
    if all(frame.shape == frames[0].shape for frame in frames):
        return np.stack(frames)
    import cv2

    return np.stack(
        [np.asarray(cv2.resize(frame, (width, height)), dtype=np.uint8) for frame in frames]
    )


def _side_data(frame: VideoFrame) -> SideDataContainer:
    """What comes beside a frame.

    ``frame.side_data`` is kept by the frame that it keeps. Until the garbage collector came by,
    such frames would hold their memory, and with it change what decoders put in the place of
    damaged parts: whatever an earlier frame left there.
    """
    from av.sidedata.sidedata import SideDataContainer

    return SideDataContainer(frame)  # type: ignore[call-arg]  # PyAV's stub leaves __init__ out


def _rgb(frame: VideoFrame, size: tuple[int, int], interpolation: str) -> NDArray[np.uint8]:
    """By the matrix and range that the frame names: left alone, PyAV takes BT.601's for all."""
    kind = frame.format
    colours: dict[str, int] = {}
    if not (kind.is_rgb or kind.has_palette or kind.is_bayer):
        matrix = _BT601 if frame.colorspace == _UNSPECIFIED else frame.colorspace
        full_by_kind = kind.name.startswith("yuvj") or (
            not frame.color_range and kind.name.startswith(("gray", "ya"))
        )
        is_full = full_by_kind or frame.color_range == _FULL_RANGE
        colours = {
            "src_colorspace": matrix,
            # RGB has no matrix; PyAV looks at the frame's own only where the two differ.
            "dst_colorspace": _FCC if matrix == _BT601 else _BT601,
            "src_color_range": _FULL_RANGE if is_full else _LIMITED_RANGE,
            "dst_color_range": _FULL_RANGE,
        }
    rgb = frame.reformat(*size, format="rgb24", interpolation=interpolation, **colours)
    return np.asarray(rgb.to_ndarray(), dtype=np.uint8)
