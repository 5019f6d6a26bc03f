"""Similarity of a generated video's frames to its original's, and to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.analysis.t2v_verify.frames import WINDOW, psnr, ssim
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.frames import read_frames

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Frames = NDArray[np.uint8]
"""Shape (n, height, width, 3), RGB."""

PSNR: Final = "PSNR"
SSIM: Final = "SSIM"
INTER_PSNR: Final = "inter-frame PSNR"
INTER_SSIM: Final = "inter-frame SSIM"
_LUMA: Final = (0.299, 0.587, 0.114)
"""BT.601's weights of red, green and blue."""


def frames_of(path: Path, n_frames: int) -> Frames:
    """Return evenly spaced frames of a video, including its first and last.

    Raises:
        DataError: If it cannot be read, or its frames are smaller than SSIM's window.
    """
    frames = read_frames(path, n_frames).frames
    if min(frames.shape[1:3]) < WINDOW:
        raise DataError(f"{path}: expected frames of at least {WINDOW} pixels a side")
    return frames


def likeness(generated: Frames, original: Frames) -> dict[str, float]:
    """Return PSNR (over red, green and blue) and SSIM (of brightness) of a video with its original.

    Frames are matched by their relative position: the first with the first, the last with the
    last. Generated frames are resized to the size of the original's. Frames of a video with fewer
    frames than asked for repeat.
    """
    n_frames = max(len(generated), len(original))
    shown = _resized(_spread(generated, n_frames), original.shape[1:3])
    originals = _spread(original, n_frames)
    return {PSNR: psnr(shown, originals), SSIM: ssim(_gray(shown), _gray(originals))}


def steadiness(frames: Frames) -> dict[str, float]:
    """Return PSNR and SSIM of adjacent frames of a video; nothing for a single frame.

    Source:
        VidCapBench, section 4.4 ("aesthetic quality and structural integrity, evaluated using
        inter-frame PSNR and SSIM"). It does not say which frames: here adjacent sampled ones.
    """
    if len(frames) < 2:
        return {}
    gray = _gray(frames)
    return {INTER_PSNR: psnr(frames[1:], frames[:-1]), INTER_SSIM: ssim(gray[1:], gray[:-1])}


def _spread(frames: Frames, n_frames: int) -> Frames:
    indices = np.round(np.linspace(0, len(frames) - 1, n_frames)).astype(int)
    return np.asarray(frames[indices], dtype=np.uint8)


def _resized(frames: Frames, size: Sequence[int]) -> Frames:
    """Return frames at a height and width."""
    height, width = size
    if frames.shape[1:3] == (height, width):
        return frames
    import cv2

    is_smaller = height * width < frames.shape[1] * frames.shape[2]
    way = cv2.INTER_AREA if is_smaller else cv2.INTER_CUBIC
    resized = [cv2.resize(frame, (width, height), interpolation=way) for frame in frames]
    return np.stack([np.asarray(frame, dtype=np.uint8) for frame in resized])


def _gray(frames: Frames) -> NDArray[np.float64]:
    return np.asarray(frames @ np.asarray(_LUMA), dtype=np.float64)
