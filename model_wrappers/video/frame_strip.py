"""Pictures for judges that see: three frames of a video side by side, or evenly spaced ones."""

from __future__ import annotations

import hashlib
import io
import zipfile
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
_VERSION: Final = 4
"""Raised with every change of how frames are read or pictures are drawn: kept ones are drawn again.
If one comes out differently, its stored verdicts no longer count."""
_END_OF_JPEG: Final = b"\xff\xd9"
"""A file without it was cut off, as by a power cut."""
FRAME_PIXELS: Final = 768 * 768
"""Larger single frames are shrunk to this area, as ``caption_openai`` does it."""
_MOST_BYTES: Final = 2**24
"""Largest kept frame; a JPEG of that area has a fiftieth of it."""


def frame_strip(video: Path, *, cache: Path, sampling: Sampling = "first_middle_last") -> Picture:
    """Draw three frames of a video in one 1536x512 picture, labelled "Frame 1" to "Frame 3".

    Every panel is 512x512: the frame, squeezed to 512x462 as in the released code, above a white
    bar with its label. JPEG (quality 90, full colour resolution): a PNG is four times as large. A
    strip is drawn once for a video's content and kept, so its bytes, and with them the keys of
    stored verdicts, stay the same under other versions of the codecs. Frames are those of the paper
    (``first_middle_last``), or at 0, 1/3 and 2/3 of the video, as the released code has them.

    Source:
        G-VEval, section 3.5 and figure 2; ztangaj/gveval@fee3fd7:evaluation/gveval/utils.py.
    """
    path = cache / "frames" / f"{_digest(video)}-{sampling}-v{_VERSION}.jpg"
    try:
        data = path.read_bytes()
    except OSError:
        data = b""
    if not data.endswith(_END_OF_JPEG):
        # Not at the top: hooks import this module long before a video is read.
        from lmms_eval_captions.model_wrappers.video.frames import read_frames
        from lmms_eval_captions.model_wrappers.video.sampling import Thirds, Uniform

        is_thirds = sampling == "thirds"
        frames = read_frames(video, Thirds() if is_thirds else Uniform(3)).frames
        last = len(frames) - 1
        middle = min(1, last) if is_thirds else last // 2
        data = draw_strip([frames[0], frames[middle], frames[last]])
        _keep(path, data)
    return Picture(data, "image/jpeg")


def strip_of_frames(frames: Sequence[Any]) -> Picture:
    """Draw the strip of the first, middle and last of frames in memory, in order of time.

    They are PIL's pictures, or arrays of shape (height, width, 3), RGB.
    """
    pictures = _rgb_frames(frames)
    last = len(pictures) - 1
    return Picture(draw_strip([pictures[at] for at in (0, last // 2, last)]), "image/jpeg")


def shown_frames(video: Path, n_frames: int, *, cache: Path) -> list[Picture]:
    """Return evenly spaced frames of a video, the first and the last included.

    A shorter video gives each of its frames once. They are written once for a video's content and
    kept, as strips are: JPEGs (quality 90) of at most 768 x 768 pixels' area, in order of time.
    """
    path = cache / "frames" / f"{_digest(video)}-uniform{n_frames}-v{_VERSION}.zip"
    jpegs = _kept_frames(path)
    if not jpegs:
        from lmms_eval_captions.model_wrappers.video.frames import read_frames

        jpegs = [_jpeg(f) for f in read_frames(video, n_frames, max_pixels=FRAME_PIXELS).frames]
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as packed:
            for number, jpeg in enumerate(jpegs):
                packed.writestr(zipfile.ZipInfo(f"{number:04d}.jpg"), jpeg)
        _keep(path, buffer.getvalue())
    return [Picture(jpeg, "image/jpeg") for jpeg in jpegs]


def frames_shown(frames: Sequence[Any], n_frames: int) -> list[Picture]:
    """Return evenly spaced frames, as :func:`shown_frames`, of frames in memory."""
    from lmms_eval_captions.model_wrappers.video.pictures import fit
    from lmms_eval_captions.model_wrappers.video.sampling import spread

    pictures = _rgb_frames(frames)
    chosen = (pictures[at] for at in spread(len(pictures), n_frames))
    return [Picture(_jpeg(fit(frame, FRAME_PIXELS)), "image/jpeg") for frame in chosen]


def _rgb_frames(frames: Sequence[Any]) -> list[NDArray[np.uint8]]:
    """Return frames as arrays of shape (height, width, 3), RGB."""
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


def draw_strip(frames: list[NDArray[np.uint8]]) -> bytes:
    """Draw labelled frames, each of shape (height, width, 3), RGB, left to right, as a JPEG."""
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


def _jpeg(frame: NDArray[np.uint8]) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(frame).save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()


def _digest(video: Path) -> str:
    """Return the digest of a file's content; a ``DataError`` if it cannot be read."""
    check_file(video)
    digest = hashlib.blake2b(digest_size=16)
    try:
        with video.open("rb") as file:
            while piece := file.read(2**20):
                digest.update(piece)
    except OSError as error:
        raise DataError(f"{video} cannot be read: {error}; check the data folder") from error
    return digest.hexdigest()


def _keep(path: Path, data: bytes) -> None:
    try:
        write_atomically(path, data)
    except OSError as error:
        logger.warning("the frames cannot be kept in {}: {}", path.parent, error)


def _kept_frames(path: Path) -> list[bytes]:
    """Return the frames that an earlier call wrote; none if they are missing or damaged."""
    try:
        with zipfile.ZipFile(path) as packed:
            if any(info.file_size > _MOST_BYTES for info in packed.infolist()):
                return []
            return [packed.read(name) for name in packed.namelist()]
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile):
        return []
