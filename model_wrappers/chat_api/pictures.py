"""Frames and pictures as an endpoint takes them: JPEG in data URLs, each clip's written once."""

from __future__ import annotations

import base64
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.pictures import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from lmms_eval_captions.model_wrappers.video.clip import Clip

Part = dict[str, Any]
"""A part of a chat message, as OpenAI has them."""

_JPEG_QUALITY: Final = 90
_JPEG: Final = "data:image/jpeg;base64,"
MAX_NUM_FRAMES: Final = 32
FRAME_PIXELS: Final = 768 * 768
"""Of frames of videos, unless the user says otherwise."""
IMAGE_PIXELS: Final = 2048 * 2048
"""Of pictures that tasks show: pages and plans must stay readable."""
_LEAST_PIXELS: Final = 64 * 64
"""No picture is made smaller than that."""


class Pictures:
    """Frames of clips as parts of messages; those of one clip are written once for all its prompts.

    They stay for as long as the clip does. May be asked by several threads.

    Args:
        frame_pixels: Larger frames are shrunk to that area.
        image_pixels: Larger pictures that a task shows are shrunk to that area.
        detail: How closely the endpoint looks, as OpenAI has it; ``None`` for its own choice.
        n_threads: Frames that are written at once, >= 1.
    """

    def __init__(
        self,
        *,
        frame_pixels: int,
        image_pixels: int = IMAGE_PIXELS,
        detail: str | None = None,
        n_threads: int = 1,
    ) -> None:
        self._frame_pixels = frame_pixels
        self._image_pixels = image_pixels
        self._detail = detail
        self._writers = ThreadPoolExecutor(n_threads, thread_name_prefix="jpeg")
        self._map: Callable[..., Iterable[Part]] = self._writers.map
        self._lock = threading.Lock()
        self._written: WeakKeyDictionary[Clip, Future[list[Part]]] = WeakKeyDictionary()

    def of(self, clip: Clip) -> list[Part]:
        """A clip's frames, in order.

        Raises:
            DataError: If one cannot be written.
        """
        most = self._image_pixels if clip.is_image else self._frame_pixels
        part = partial(self._part, most_pixels=most)
        return self.once(clip, lambda: list(self._map(part, clip.frames)))

    def once(self, clip: Clip, write: Callable[[], list[Part]]) -> list[Part]:
        """What a clip is shown as, written by whoever asks for it first.

        Raises:
            DataError: That of ``write``.
        """
        with self._lock:
            written = self._written.get(clip)
            is_first = written is None
            if written is None:
                written = self._written[clip] = Future()
        if is_first:
            try:
                written.set_result(write())
            except BaseException as error:
                written.set_exception(error)
                raise
        return written.result()

    def close(self) -> None:
        """End the threads; what is asked for later is written without them."""
        self._map = map
        self._writers.shutdown(wait=False, cancel_futures=True)

    def _part(self, frame: NDArray[np.uint8], most_pixels: int) -> Part:
        picture = {"url": data_url(fit(frame, most_pixels))}
        return {
            "type": "image_url",
            "image_url": picture | ({"detail": self._detail} if self._detail else {}),
        }


def data_url(frame: NDArray[np.uint8]) -> str:
    """A frame, (height, width, 3), RGB, as JPEG in a data URL.

    Raises:
        DataError: If it cannot be written.
    """
    import cv2

    quality = [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY]
    is_written, jpeg = cv2.imencode(".jpg", cv2.cvtColor(frame, cv2.COLOR_RGB2BGR), quality)
    if not is_written:
        raise DataError(f"a frame of shape {frame.shape} cannot be written as JPEG")
    return _JPEG + base64.b64encode(jpeg.tobytes()).decode("ascii")


def with_smaller_pictures(messages: Sequence[Part], step: int) -> list[Part] | None:
    """Messages whose JPEG pictures have ``1 / 2**step`` of their pixels, but 64 x 64 at least.

    The frames themselves are gone when an endpoint says that they are too large: their JPEGs are
    read, shrunk and written anew.

    Args:
        messages: As they were to be sent.
        step: How often the area is halved, >= 1.

    Returns:
        The messages, or ``None`` where there is no picture in them that was larger at the step
        before.
    """
    read = {
        part["image_url"]["url"]: frame
        for message in messages
        for part in _pictures_of(message)
        if (frame := _frame_of(part)) is not None
    }
    if not any(_n_pixels(frame) // 2 ** (step - 1) > _LEAST_PIXELS for frame in read.values()):
        return None
    smaller = {
        url: data_url(fit(frame, max(_n_pixels(frame) // 2**step, _LEAST_PIXELS)))
        for url, frame in read.items()
    }
    return [
        {**message, "content": [_with(part, smaller) for part in message["content"]]}
        if _pictures_of(message)
        else message
        for message in messages
    ]


def _pictures_of(message: Part) -> list[Part]:
    content = message["content"]
    return [part for part in content if _is_jpeg(part)] if isinstance(content, list) else []


def _is_jpeg(part: Part) -> bool:
    return part["type"] == "image_url" and str(part["image_url"]["url"]).startswith(_JPEG)


def _frame_of(part: Part) -> NDArray[np.uint8] | None:
    """A picture of ours, read; ``None`` for none that can be."""
    import cv2

    jpeg = base64.b64decode(part["image_url"]["url"].removeprefix(_JPEG))
    frame = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR_RGB)
    return None if frame is None else np.asarray(frame, np.uint8)


def _n_pixels(frame: NDArray[np.uint8]) -> int:
    height, width = frame.shape[:2]
    return int(height * width)


def _with(part: Part, urls: Mapping[str, str]) -> Part:
    """A part whose picture is another one."""
    if not _is_jpeg(part):
        return part
    url = part["image_url"]["url"]
    return {**part, "image_url": {**part["image_url"], "url": urls.get(url, url)}}
