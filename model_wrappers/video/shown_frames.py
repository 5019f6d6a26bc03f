"""What a judge sees that is shown a video: frames of it, evenly spaced, in order of time."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Picture
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.model_wrappers.video.frame_strip import digest_of, rgb_frames

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

FRAME_PIXELS: Final = 768 * 768
"""Larger frames are shrunk to this area, as ``caption_openai`` does it."""
_QUALITY: Final = 90
_MOST_BYTES: Final = 2**24
"""Of one kept frame; a JPEG of this area has a fiftieth of it."""
_VERSION: Final = 1
"""Raised with every change of how frames are read or written; see ``frame_strip``."""


def shown_frames(video: Path, n_frames: int, *, cache: Path) -> list[Picture]:
    """Frames of a video as pictures, evenly spaced, the first and the last included.

    They are written once for a video's content and kept, so their bytes, and with them the keys of
    stored verdicts, stay the same under other versions of the codecs.

    Args:
        video: Video file.
        n_frames: How many, >= 1; a shorter video gives each of its frames once.
        cache: The package's cache folder.

    Returns:
        JPEGs (quality 90) of at most 768 x 768 pixels' area, in order of time.

    Raises:
        DataError: If the video is missing or holds no readable frame.
    """
    path = cache / "frames" / f"{digest_of(video)}-uniform{n_frames}-v{_VERSION}.zip"
    kept = _kept(path)
    if kept is not None:
        return kept
    # Not at the top: hooks import this module long before a video is read, and this needs numpy.
    from lmms_eval_captions.model_wrappers.video.frames import read_frames

    jpegs = [_jpeg(frame) for frame in read_frames(video, n_frames, max_pixels=FRAME_PIXELS).frames]
    try:
        write_atomically(path, _packed(jpegs))
    except OSError as error:
        logger.warning("the frames cannot be kept in {}: {}", path.parent, error)
    return [Picture(jpeg, "image/jpeg") for jpeg in jpegs]


def frames_shown(frames: Sequence[Any], n_frames: int) -> list[Picture]:
    """As :func:`shown_frames`, of frames that are at hand.

    Args:
        frames: Those of the video, in order of time: see :func:`.frame_strip.rgb_frames`.
        n_frames: How many are shown, >= 1.

    Raises:
        DataError: If there is none, or one is no picture.
    """
    from lmms_eval_captions.model_wrappers.video.resizing import fit
    from lmms_eval_captions.model_wrappers.video.sampling import spread

    pictures = rgb_frames(frames)
    chosen = (pictures[at] for at in spread(len(pictures), n_frames))
    return [Picture(_jpeg(fit(frame, FRAME_PIXELS)), "image/jpeg") for frame in chosen]


def _kept(path: Path) -> list[Picture] | None:
    """What an earlier call wrote, ``None`` where there is nothing that can be read."""
    try:
        with zipfile.ZipFile(path) as packed:
            if any(info.file_size > _MOST_BYTES for info in packed.infolist()):
                return None
            frames = [packed.read(name) for name in packed.namelist()]
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile):
        return None
    return [Picture(frame, "image/jpeg") for frame in frames] or None


def _packed(jpegs: list[bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as packed:
        for number, jpeg in enumerate(jpegs):
            packed.writestr(zipfile.ZipInfo(f"{number:04d}.jpg"), jpeg)
    return buffer.getvalue()


def _jpeg(frame: NDArray[np.uint8]) -> bytes:
    """A frame of shape (height, width, 3), RGB."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(frame).save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()
