"""From a decoded frame to RGB: its own colours, the right way up, and small enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import numpy as np

from lmms_eval_captions.model_wrappers.frames import fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from av.video.frame import VideoFrame
    from numpy.typing import NDArray

_FULL_RANGE: Final = 2
_UNSPECIFIED, _BT601, _FCC = 2, 5, 4
"""FFmpeg's numbers of a range and of matrices (AVCOL_RANGE, AVCOL_SPC)."""


def picture(frame: VideoFrame, max_pixels: int | None) -> NDArray[np.uint8]:
    """A frame, shape (height, width, 3), RGB, the right way up, shrunk to ``max_pixels``."""
    pixels = fit(_rgb(frame), max_pixels)
    matrix = frame.side_data.get("DISPLAYMATRIX")
    if matrix is None:
        return pixels
    # (x, y) goes to (a x + c y, b x + d y); turns that are not quarters count as the nearest.
    a, b, _, c, d = np.frombuffer(memoryview(cast("bytes", matrix)), dtype=np.int32)[:5].tolist()
    if abs(b) > abs(a):
        pixels, a, d = pixels.transpose(1, 0, 2), c, b
    return np.ascontiguousarray(pixels[:: -1 if d < 0 else 1, :: -1 if a < 0 else 1])


def stack(frames: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Frames of one size; a stream that changes its size keeps that of its first frame."""
    height, width = frames[0].shape[:2]
    if all(frame.shape == frames[0].shape for frame in frames):
        return np.stack(frames)
    import cv2

    return np.stack(
        [np.asarray(cv2.resize(frame, (width, height)), dtype=np.uint8) for frame in frames]
    )


def _rgb(frame: VideoFrame) -> NDArray[np.uint8]:
    """By the matrix and range that the frame names: left alone, PyAV takes BT.601's for all."""
    kind = frame.format
    if kind.is_rgb or kind.has_palette or kind.is_bayer:
        return np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)
    matrix = _BT601 if frame.colorspace == _UNSPECIFIED else frame.colorspace
    is_full = frame.color_range == _FULL_RANGE or (
        not frame.color_range and kind.name.startswith(("gray", "ya"))
    )
    rgb = frame.reformat(
        format="rgb24",
        src_colorspace=matrix,
        # RGB has no matrix; PyAV looks at the frame's own only where the two differ.
        dst_colorspace=_FCC if matrix == _BT601 else _BT601,
        src_color_range=_FULL_RANGE if is_full or kind.name.startswith("yuvj") else 1,
        dst_color_range=_FULL_RANGE,
    )
    return np.asarray(rgb.to_ndarray(), dtype=np.uint8)
