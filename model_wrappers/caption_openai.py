"""The ``caption_openai`` model: any OpenAI-compatible endpoint that sees images or videos.

The engine of the judge asks: as many requests in flight as the endpoint takes, retries of what can
pass, and every reply on disk before it counts, so that no caption is ever paid for twice.
"""

from __future__ import annotations

import base64
import mimetypes
import os
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.endpoint.cache_folder import cache_folder
from lmms_eval_captions.judges.endpoint.chain import Ask, Chain
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.endpoint import PROVIDER_URLS, Endpoint, parse_key
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.redaction import scrub
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.urls import parse_urls
from lmms_eval_captions.judges.errors import CaptionError, CaptionsError, DataError, SettingsError
from lmms_eval_captions.judges.surrogates import whole
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, Captioner, CaptionJob
from lmms_eval_captions.model_wrappers.video.resizing import fit
from lmms_eval_captions.model_wrappers.video.sampling import Explicit, sampling_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from lmms_eval_captions.judges.endpoint.outcome import Asked
    from lmms_eval_captions.model_wrappers.generation import Generation

_PROTOCOL: Final = "caption:1"
_SEND: Final = ("frames", "video")
_JPEG_QUALITY: Final = 90


class CaptionOpenai(Captioner):
    """Captions by an endpoint such as OpenAI's, vLLM's or SGLang's.

    The key is read from ``OPENAI_API_KEY`` or the variable that ``api_key_env`` names; an endpoint
    on this machine needs none. Captions are kept under ``LMMS_CAPTIONS_CACHE``: a run that was
    ended goes on where it stopped, and a finished one costs nothing when it is run again.

    Args:
        model: Name that the endpoint knows.
        base_url: e.g. ``http://127.0.0.1:8000/v1``, by default ``OPENAI_BASE_URL``, then OpenAI's;
            replicas are separated by ``;``.
        alias: Name under which the endpoint answers as the model, where it is another one.
        send: ``frames`` sends them as images, ``video`` the file itself as a ``video_url``.
        max_num_frames: Most frames of a clip; so many, evenly spaced, where ``fps`` is not given.
        fps: Frames a second, at most ``max_num_frames``.
        frame_pixels: Larger frames are shrunk to that area before they are sent.
        concurrency: Most requests in flight.
        timeout_s: Longest wait for one caption.
        api_key_env: Variable that holds the key.
        max_tokens_field: How the endpoint calls the longest caption; newer models of OpenAI want
            ``max_completion_tokens``.
        common: ``decode_threads``, ``max_pixels``; see ``Captioner``. ``--batch_size`` has no
            bearing.

    Raises:
        SettingsError: If an argument or the endpoint's key is missing or cannot be used.
    """

    keeps_captions = False
    """Replies are kept by the engine, for every captioner of the model's name."""

    def __init__(  # noqa: PLR0913
        self,
        *,
        model: str = "",
        base_url: str | None = None,
        alias: str | None = None,
        send: str = "frames",
        max_num_frames: int = 32,
        fps: float | None = None,
        frame_pixels: int = 768 * 768,
        concurrency: int = 32,
        timeout_s: float = 300.0,
        api_key_env: str = "OPENAI_API_KEY",
        max_tokens_field: str = "max_tokens",
        **common: object,
    ) -> None:
        if not model:
            raise SettingsError("caption_openai: expected --model_args model=NAME, got none")
        if send not in _SEND:
            raise SettingsError(f"caption_openai: send={send!r} is not one of {', '.join(_SEND)}")
        if not isinstance(concurrency, int) or concurrency < 1:
            raise SettingsError(
                f"caption_openai: expected concurrency of at least 1, got {concurrency!r}"
            )
        super().__init__(**common)  # type: ignore[arg-type] # checked by the base
        self.model_name = str(model)
        self.send = send
        # A clip that is sent whole is opened for its first frame: a broken one is not paid for.
        self.sampling = Explicit((0,)) if send == "video" else sampling_of(max_num_frames, fps)
        self.frame_pixels = frame_pixels
        self.timeout_s = float(timeout_s)
        self.max_tokens_field = max_tokens_field
        self._under_way = threading.Semaphore(2 * concurrency)
        self._engine = Engine(_engine_config(base_url, api_key_env, concurrency, alias))

    def prepare(
        self,
        jobs: Sequence[CaptionJob],
        generation: Generation,  # noqa: ARG002
    ) -> list[list[dict[str, object]]]:
        """What is shown, as parts of a chat message."""
        if self.send == "video":
            return [[_video_part(job)] for job in jobs]
        return [[_image_part(fit(f, self.frame_pixels)) for f in job.clip.frames] for job in jobs]

    def caption(self, batch: Batch) -> list[Future[Caption]]:
        """Hand the jobs to the engine; waits only where many are under way already."""
        shown = batch.prepared
        if not isinstance(shown, list):
            raise TypeError(f"expected what prepare returned, got {shown!r}")
        futures = []
        for job, parts in zip(batch.jobs, shown, strict=True):
            self._under_way.acquire()
            request = self._request(job, parts, batch.generation)
            futures.append(_caption_of(self._engine, _chain(request), self._under_way))
        return futures

    def clean(self) -> None:
        """End the engine before judging begins."""
        self._engine.close()
        super().clean()

    def _request(
        self, job: CaptionJob, parts: Sequence[dict[str, object]], generation: Generation
    ) -> Request:
        content = [*parts, {"type": "text", "text": job.prompt}]
        params: dict[str, object] = {
            "temperature": generation.temperature,
            self.max_tokens_field: generation.max_new_tokens,
        }
        if generation.top_p is not None:
            params["top_p"] = generation.top_p
        return Request(
            protocol=_PROTOCOL,
            model=self.model_name,
            messages=[{"role": "user", "content": content}],
            params=params,
            seed=0,
            timeout_s=self.timeout_s,
            stand_in=lambda: "",
        )


class CaptionOpenaiChat(CaptionOpenai):
    """The same behind lmms-eval's chat interface."""

    is_simple = False


def _endpoint(base_url: str | None, api_key_env: str, alias: str | None) -> Endpoint:
    """The captioner's endpoint; settings of the judge are those of another one.

    Raises:
        SettingsError: If it cannot be used, or needs a key and has none.
    """
    given = [base_url, os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_URL")]
    texts = (str(value).strip() for value in given if value)
    url = next(filter(None, texts), PROVIDER_URLS["openai"])
    setting = "caption_openai: base_url" if base_url else "OPENAI_BASE_URL or OPENAI_API_URL"
    key = os.environ.get(api_key_env, "").strip()
    endpoint = Endpoint(
        urls=parse_urls(setting, url.replace(";", ",")),
        api_key=parse_key(api_key_env, key) if key else None,
        key_name=api_key_env,
        alias=whole(str(alias)) if alias else None,
    )
    endpoint.require_access(
        "caption_openai:", "set it, or name an endpoint on this machine with base_url="
    )
    return endpoint


def _engine_config(
    base_url: str | None, api_key_env: str, concurrency: int, alias: str | None = None
) -> EngineConfig:
    endpoint = _endpoint(base_url, api_key_env, alias)
    return EngineConfig(
        urls=endpoint.urls,
        store=cache_folder() / "caption_replies",
        api_key=endpoint.api_key,
        concurrency=concurrency,
        role="captioner",
        alias=endpoint.alias,
    )


def _chain(request: Request) -> Chain[Asked[Reply]]:
    async def chain(ask: Ask) -> Asked[Reply]:
        # An empty reply is asked again; anything else is a caption.
        return await ask(request, lambda reply: reply if reply.text.strip() else None)

    return chain


def _caption_of(
    engine: Engine, chain: Chain[Asked[Reply]], under_way: threading.Semaphore
) -> Future[Caption]:
    asked: Future[list[Asked[Reply]]] = engine.submit([chain])
    caption: Future[Caption] = Future()

    def finish(done: Future[list[Asked[Reply]]]) -> None:
        under_way.release()
        error = done.exception()
        if error is not None:
            is_ours = isinstance(error, CaptionsError)
            words = scrub(f"internal error: {error!r}", engine.config.api_key, *engine.config.urls)
            caption.set_exception(error if is_ours else CaptionError(words))
            return
        [answer] = done.result()
        if answer.value is None:
            caption.set_exception(CaptionError(answer.reason or "no caption came back"))
        elif answer.cached:
            caption.set_result(Caption(answer.value.text))
        else:
            caption.set_result(
                Caption(answer.value.text, answer.usage.input_tokens, answer.usage.output_tokens)
            )

    asked.add_done_callback(finish)
    return caption


def _image_part(frame: NDArray[np.uint8]) -> dict[str, object]:
    import cv2

    quality = [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY]
    is_written, jpeg = cv2.imencode(".jpg", cv2.cvtColor(frame, cv2.COLOR_RGB2BGR), quality)
    if not is_written:
        raise DataError(f"a frame of shape {frame.shape} cannot be written as JPEG")
    return {"type": "image_url", "image_url": {"url": _data_url("image/jpeg", jpeg.tobytes())}}


def _video_part(job: CaptionJob) -> dict[str, object]:
    url = _data_url(_media_type(job.path.name), job.path.read_bytes())
    return {"type": "video_url", "video_url": {"url": url}}


def _media_type(name: str) -> str:
    """What a clip is sent as: by its name alone ``.ts`` is a text, and ``.3gp`` sound.

    >>> _media_type("a.webm"), _media_type("a.bin")
    ('video/webm', 'video/mp4')
    """
    kind = (mimetypes.guess_type(name)[0] or "").replace("audio/", "video/")
    return kind if kind.startswith("video/") or kind == "image/gif" else "video/mp4"


def _data_url(kind: str, raw: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(raw).decode('ascii')}"
