"""Chats of ``caption_openai``: how its endpoint is reached, and messages with frames or files."""

from __future__ import annotations

import base64
import mimetypes
import os
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from lmms_eval_captions.judges.endpoint.cost import load_prices, price_of, prices_file
from lmms_eval_captions.judges.endpoint.dialects import OPENAI, api_of
from lmms_eval_captions.judges.endpoint.endpoint import (
    Endpoint,
    EngineConfig,
    cache_folder,
    parse_key,
)
from lmms_eval_captions.judges.endpoint.progress import Totals, cost_words
from lmms_eval_captions.judges.endpoint.urls import parse_urls
from lmms_eval_captions.judges.errors import DataError, JudgeStoppedError, SettingsError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.model_wrappers.video.pictures import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob
    from lmms_eval_captions.model_wrappers.video.clip import Clip

Part = dict[str, Any]
"""A part of a chat message, as OpenAI has them."""

_JPEG_QUALITY: Final = 90
_JPEG: Final = "data:image/jpeg;base64,"
MAX_NUM_FRAMES: Final = 32
FRAME_PIXELS: Final = 768 * 768
"""Default area of frames of videos."""
_IMAGE_PIXELS: Final = 2048 * 2048
"""Area of pictures that tasks show: pages and plans must stay readable."""
_LEAST_PIXELS: Final = 64 * 64
"""No picture is made smaller than that."""


class Pictures:
    """Frames of clips as parts of messages; those of one clip are encoded once for all prompts.

    They stay for as long as the clip does. One thread asks. Larger frames of videos are shrunk to
    ``frame_pixels``.
    """

    def __init__(self, *, frame_pixels: int, detail: str | None, n_threads: int) -> None:
        self._frame_pixels = frame_pixels
        self._detail = {"detail": detail} if detail else {}
        self._writers = ThreadPoolExecutor(n_threads, thread_name_prefix="jpeg")
        self._written: WeakKeyDictionary[Clip, list[Part]] = WeakKeyDictionary()

    def of(self, clip: Clip) -> list[Part]:
        """Return a clip's frames, in order; a ``DataError`` if one cannot be written."""
        most_pixels = _IMAGE_PIXELS if clip.is_image else self._frame_pixels

        def part(frame: NDArray[np.uint8]) -> Part:
            picture = {"url": data_url(fit(frame, most_pixels)), **self._detail}
            return {"type": "image_url", "image_url": picture}

        return self.once(clip, lambda: list(self._writers.map(part, clip.frames)))

    def once(self, clip: Clip, write: Callable[[], list[Part]]) -> list[Part]:
        """Return a clip's parts, written by the first who asks."""
        if clip not in self._written:
            self._written[clip] = write()
        return self._written[clip]

    def close(self) -> None:
        """End the threads."""
        self._writers.shutdown(wait=False, cancel_futures=True)


def data_url(frame: NDArray[np.uint8]) -> str:
    """Return a frame, (height, width, 3), RGB, as JPEG in a data URL."""
    import cv2

    quality = [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY]
    is_written, jpeg = cv2.imencode(".jpg", cv2.cvtColor(frame, cv2.COLOR_RGB2BGR), quality)
    if not is_written:
        raise DataError(f"a frame of shape {frame.shape} cannot be written as JPEG")
    return _JPEG + base64.b64encode(jpeg.tobytes()).decode("ascii")


def with_smaller_pictures(messages: Sequence[Part], step: int) -> list[Part] | None:
    """Return messages whose JPEG pictures have ``1 / 2**step`` of their pixels, at least 64 x 64.

    The frames themselves are gone when an endpoint says that they are too large: their JPEGs are
    read, shrunk and written again. ``None`` if no picture was larger at the step before.
    """
    import cv2

    n_larger = 0

    def smaller(part: Part) -> Part:
        nonlocal n_larger
        url = str(part["image_url"]["url"]) if part["type"] == "image_url" else ""
        jpeg = base64.b64decode(url.removeprefix(_JPEG)) if url.startswith(_JPEG) else b""
        frame = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR_RGB) if jpeg else None
        if frame is None:
            return part
        n_pixels = int(frame.shape[0] * frame.shape[1])
        n_larger += n_pixels // 2 ** (step - 1) > _LEAST_PIXELS
        url = data_url(fit(np.asarray(frame), max(n_pixels // 2**step, _LEAST_PIXELS)))
        return {**part, "image_url": {**part["image_url"], "url": url}}

    made = [
        {**message, "content": [smaller(part) for part in message["content"]]}
        if isinstance(message["content"], list)
        else message
        for message in messages
    ]
    return made if n_larger else None


def video_parts(job: CaptionJob) -> list[Part]:
    """Return the file of a job's video as it is, with its sound."""
    path = job.path
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    url = f"data:{media_type(path)};base64,{base64.b64encode(raw).decode('ascii')}"
    return [{"type": "video_url", "video_url": {"url": url}}]


def media_type(path: Path) -> str:
    """Return a clip's media type; by its name alone ``.ts`` is a text, and ``.3gp`` sound."""
    kind = (mimetypes.guess_type(path.name)[0] or "").replace("audio/", "video/")
    return kind if kind.startswith("video/") or kind == "image/gif" else "video/mp4"


def engine_config(
    base_url: str | None,
    api_key_env: str,
    alias: str | None,
    *,
    concurrency: int,
    max_cost_usd: float | None,
) -> EngineConfig:
    """Return the settings of the captioner's engine; those of the judge do not apply."""
    given = [base_url, os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_URL")]
    texts = (str(value).strip() for value in given if value)
    url = next(filter(None, texts), OPENAI.default_url)
    setting = "caption_openai: base_url" if base_url else "OPENAI_BASE_URL or OPENAI_API_URL"
    key = os.environ.get(api_key_env, "").strip()
    urls = parse_urls(setting, url, separators=",;")
    api, api_key = api_of(urls), parse_key(api_key_env, key) if key else None
    Endpoint(urls=urls, api=api, api_key=api_key, key_name=api_key_env).require_access(
        "caption_openai:", "set it, or name an endpoint on this machine with base_url="
    )
    return EngineConfig(
        urls=urls,
        store=cache_folder() / "caption_replies",
        api=api,
        api_key=api_key,
        concurrency=concurrency,
        role="captioner",
        alias=whole(str(alias)) if alias else None,
        max_cost_usd=max_cost_usd,
        prices=prices_file(),
    )


def billed(totals: Totals) -> str:
    """Return the requests of this process and their cost, for the log.

    >>> billed(Totals(calls=3, from_store={"http://a/v1": 2}, tokens={"m": (3000, 60)},
    ...     usd_by_model={"m": 0.00825}, prices_date="2025-06-30"))
    '3 calls, 2 replies from the store; 3,000 tokens in, 60 out; $0.01 by the prices of 2025-06-30'
    """
    n_in, n_out = map(sum, zip((0, 0), *totals.tokens.values(), strict=True))
    asked = f"{totals.calls:,} calls, {totals.n_from_store:,} replies from the store"
    price = cost_words(totals.usd_by_model, totals.prices_date)
    return f"{asked}; {n_in:,} tokens in, {n_out:,} out; {price}" if totals.calls else asked


def cost_limit(value: object, model: str) -> float | None:
    """Return the argument ``max_cost`` in US dollars, all processes together."""
    if value is None:
        return None
    try:
        limit_usd = float(str(value).removeprefix("$"))
    except ValueError:
        limit_usd = 0.0
    if isinstance(value, bool) or not 0 < limit_usd < inf:
        raise SettingsError(
            f"caption_openai: max_cost: expected US dollars above 0, such as 20, got {value!r}"
        )
    try:
        price_of(model, load_prices(prices_file()), "captioner")
    except JudgeStoppedError as error:
        raise SettingsError(str(error)) from error
    return limit_usd
