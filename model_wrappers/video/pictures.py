"""Still pictures: shrunk to an area, or read from whatever a task shows."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.clip import Clip

MAX_PIXELS: Final = 1920 * 1088
"""Area to which larger frames of videos are shrunk by default."""
MAX_PICTURE_PIXELS: Final = 4096 * 4096
"""The same for pictures: pages and plans must stay readable."""


def fit(frame: NDArray[Any], max_pixels: int | None) -> NDArray[Any]:
    """Shrink a frame to at most ``max_pixels``, keeping its shape."""
    height, width = frame.shape[:2]
    if max_pixels is None or height * width <= max_pixels:
        return frame
    import cv2

    size = shrunk(width, height, max_pixels)
    return np.asarray(cv2.resize(frame, size, interpolation=cv2.INTER_AREA), dtype=frame.dtype)


def shrunk(width: int, height: int, max_pixels: int) -> tuple[int, int]:
    """Return width and height shrunk to at most ``max_pixels``, keeping their ratio.

    >>> shrunk(7680, 4320, 1920 * 1080)
    (1920, 1080)
    """
    scale = min(1.0, (max_pixels / (height * width)) ** 0.5)
    return max(1, int(width * scale)), max(1, int(height * scale))


def one_line(error: Exception) -> str:
    """Return the first line of a library's error, or its kind if it has no text."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def read_picture(raw: object, max_pixels: int = MAX_PICTURE_PIXELS) -> Clip:
    """Read a picture as a clip of one frame, turned as its file says.

    It is one of PIL's, an array (height, width[, channels]) of uint8, the bytes of a file or a
    ``Path``. Larger ones are shrunk to ``max_pixels``.
    """
    from PIL import Image, ImageOps

    name = f"one given as {type(raw).__name__}"
    try:
        if isinstance(raw, np.ndarray):
            picture = Image.fromarray(raw)
        elif isinstance(raw, Image.Image):
            picture = raw
        else:
            name = f"one of {len(raw):,} bytes" if isinstance(raw, bytes) else str(raw)
            if not isinstance(raw, bytes) and not Path(name).is_file():
                raise FileNotFoundError("there is no such file")
            file = io.BytesIO(raw) if isinstance(raw, bytes) else Path(name)
            with Image.open(file) as opened:
                picture = ImageOps.exif_transpose(opened)
        pixels = np.array(picture.convert("RGB"))
    except (OSError, ValueError, TypeError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(
            f"expected a readable picture, {name} is not one: {one_line(error)}"
        ) from error
    frames = fit(pixels, max_pixels)[None]
    return Clip(frames, np.zeros(1), duration_s=0.0, fps=0.0, n_total=1, is_image=True)


def is_picture(path: Path) -> bool:
    """Return if a file begins as a picture does; one that cannot be opened may be one."""
    from PIL import Image, UnidentifiedImageError

    if not path.is_file():
        return True  # opening a pipe would wait for ever
    try:
        Image.open(path).close()
    except UnidentifiedImageError:
        return False
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return True
    return True
