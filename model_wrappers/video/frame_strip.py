"""What G-VEval's judge sees: three frames of a video side by side."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Picture
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.model_wrappers.video.containers import check_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

Sampling = Literal["first_middle_last", "thirds"]
"""The frames of a strip, by name."""

PANEL: Final = 512
"""Width and height of one frame with its label, in pixels."""
_LABEL: Final = 50
_QUALITY: Final = 90
_PIECE: Final = 2**20
"""Bytes of a video in memory at once, for its digest."""
_VERSION: Final = 3
"""Raised with every change of how frames are read or strips are drawn. Kept strips are drawn again;
where one comes out otherwise, its stored verdicts no longer count."""


def frame_strip(video: Path, *, cache: Path, sampling: Sampling = "first_middle_last") -> Picture:
    """Three frames of a video in one 1536x512 picture, labelled "Frame 1" to "Frame 3".

    Every panel is 512x512: the frame, squeezed to 512x462 as in the released code, above a white
    bar with its label. JPEG (quality 90, full colour resolution): a PNG is four times as large, and
    every request carries it. A strip is drawn once for a video's content and kept, so its bytes,
    and with them the keys of stored verdicts, stay the same under other versions of the codecs.

    Args:
        video: Video file.
        cache: The package's cache folder.
        sampling: ``first_middle_last`` as the paper says, or ``thirds``: at 0, 1/3 and 2/3 of
            the video, as the released code does.

    Raises:
        DataError: If the video is missing or holds no readable frame.

    Source:
        G-VEval, section 3.5 and figure 2; ztangaj/gveval@fee3fd7:evaluation/gveval/utils.py.
    """
    path = cache / "frames" / f"{digest_of(video)}-{sampling}-v{_VERSION}.jpg"
    try:
        data = path.read_bytes()
    except OSError:
        data = draw_strip(_three_frames(video, sampling))
        try:
            write_atomically(path, data)
        except OSError as error:
            logger.warning("the frames cannot be kept in {}: {}", path.parent, error)
    return Picture(data, "image/jpeg")


def digest_of(video: Path) -> str:
    """Digest of a file's content, which is read piece by piece.

    Raises:
        DataError: If it is missing or cannot be read.
    """
    check_file(video)
    digest = hashlib.blake2b(digest_size=16)
    try:
        with video.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    except OSError as error:
        raise DataError(f"{video} cannot be read: {error}; check the data folder") from error
    return digest.hexdigest()


def draw_strip(frames: list[NDArray[np.uint8]]) -> bytes:
    """The JPEG of labelled frames, each of shape (height, width, 3), RGB, left to right."""
    from PIL import Image, ImageDraw, ImageFont

    strip = Image.new("RGB", (PANEL * len(frames), PANEL), "white")
    draw = ImageDraw.Draw(strip)
    font = ImageFont.load_default(size=36)
    for index, frame in enumerate(frames):
        left = index * PANEL
        # Parity: squeezed, not cut or padded.
        fitted = Image.fromarray(frame).resize((PANEL, PANEL - _LABEL), Image.Resampling.BILINEAR)
        strip.paste(fitted, (left, 0))
        middle = PANEL - _LABEL // 2
        draw.text((left + 10, middle), f"Frame {index + 1}", fill="black", font=font, anchor="lm")
    buffer = io.BytesIO()
    strip.save(buffer, "JPEG", quality=_QUALITY, subsampling=0)
    return buffer.getvalue()


def strip_of_frames(frames: Sequence[Any]) -> Picture:
    """The strip of a video's first, middle and last frame, of frames that are at hand.

    Args:
        frames: All frames of the video, or some of them, in order of time: PIL's pictures, or
            arrays of shape (height, width, 3), RGB.

    Raises:
        DataError: If there is none, or one is no picture.
    """
    pictures = rgb_frames(frames)
    last = len(pictures) - 1
    return Picture(draw_strip([pictures[at] for at in (0, last // 2, last)]), "image/jpeg")


def rgb_frames(frames: Sequence[Any]) -> list[NDArray[np.uint8]]:
    """Frames as arrays of shape (height, width, 3), RGB.

    Raises:
        DataError: If there is none, or one is no picture.
    """
    import numpy as np

    arrays = [
        np.asarray(frame.convert("RGB") if hasattr(frame, "convert") else frame) for frame in frames
    ]
    if not arrays:
        raise DataError("expected at least one frame, got none")
    for number, array in enumerate(arrays):
        if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or not array.size:
            raise DataError(
                f"frame {number}: expected a picture of PIL, or bytes of shape (height, width, 3), "
                f"got {array.dtype} of shape {array.shape}"
            )
    return arrays


def _three_frames(video: Path, sampling: Sampling) -> list[NDArray[np.uint8]]:
    """Three frames in order of time; a video of fewer shows one of them again."""
    # Not at the top: hooks import this module long before a video is read, and these need numpy.
    from lmms_eval_captions.model_wrappers.video.frames import read_frames
    from lmms_eval_captions.model_wrappers.video.sampling import FirstMiddleLast, Thirds

    is_thirds = sampling == "thirds"
    frames = read_frames(video, Thirds() if is_thirds else FirstMiddleLast()).frames
    last = len(frames) - 1
    middle = min(1, last) if is_thirds else last // 2
    return [frames[0], frames[middle], frames[last]]
