"""Engine of vLLM in this process, and its inputs: those that ``caption_hf`` hands a model."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import fields
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from PIL import Image

from lmms_eval_captions.judges.errors import CaptionError, SettingsError
from lmms_eval_captions.model_wrappers.hf.inputs import at_least, metadata_of
from lmms_eval_captions.model_wrappers.hf.prompts import prompt_text

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob
    from lmms_eval_captions.model_wrappers.hf.inputs import Showing
    from lmms_eval_captions.model_wrappers.hf.prompts import Processor
    from lmms_eval_captions.model_wrappers.video.clip import Clip

Prompt = dict[str, Any]
"""vLLM's ``TextPrompt``."""
_SCALING: Final = ("do_rescale", "rescale_factor", "do_normalize", "image_mean", "image_std")
"""Settings of a processor that affect the values of a pixel."""


def vllm_prompt(processor: Processor, job: CaptionJob, showing: Showing) -> Prompt:
    """Return a job's question and frames; vLLM calls the checkpoint's processor itself."""
    videos_of: Any = getattr(processor, "video_processor", None)
    text = prompt_text(
        processor,
        job,
        showing.system_prompt,
        sees_videos=videos_of is not None,
        form=showing.form,
    )
    start = getattr(processor.tokenizer, "bos_token", None)
    if start:
        # vLLM's tokenizer writes the start token.
        text = text.removeprefix(start)
    clips = [job.clips[part] for part in job.content if isinstance(part, int)]
    videos = [c for c in clips if videos_of is not None and not c.is_image]
    pictures = [Image.fromarray(f) for c in clips if c not in videos for f in c.frames]
    shown: dict[str, object] = {}
    arguments: dict[str, object] = dict(showing.arguments)
    if videos:
        videos = [at_least(clip, videos_of) for clip in videos]
        shown["video"] = [_video(clip) for clip in videos]
        arguments = {"do_sample_frames": False, **arguments}
    if pictures:
        shown["image"] = pictures
    if showing.frame_size is not None:
        counts = [len(clip.frames) for clip in videos]
        told = showing.frame_size.arguments(processor, counts, has_pictures=bool(pictures))
        arguments = {**_flat(told), **arguments}
    prompt: Prompt = {"prompt": text}
    if shown:
        prompt |= {"multi_modal_data": shown, "mm_processor_kwargs": arguments}
    return prompt


def scales_alike(processor: Processor, arguments: Mapping[str, object]) -> bool:
    """Return if videos are scaled as pictures are, and both as the checkpoint says.

    Elsewhere captions are wrong with vLLM's ``mm_device_do_normalize``, which it turns on by
    itself: the model then scales all pixels as the checkpoint's image processor does. Source:
    vLLM 0.32, ``mm_input_norm.py``.

    Args:
        processor: Of the checkpoint.
        arguments: Of its call, as the user gives them.
    """
    given = {
        name
        for key, value in arguments.items()
        for name in (value if isinstance(value, Mapping) else (key,))
    }
    scalings = [
        [_plain(getattr(part, name, None)) for name in _SCALING]
        for kind in ("image", "video")
        if (part := getattr(processor, f"{kind}_processor", None)) is not None
    ]
    return given.isdisjoint(_SCALING) and all(scaling == scalings[0] for scaling in scalings)


def sampling_arguments(settings: GenerationConfig) -> dict[str, Any]:
    """Return generation settings as ``vllm.SamplingParams`` takes them.

    Args:
        settings: As ``generation_config`` gives them: the checkpoint's own under the task's.
    """
    ends = settings.eos_token_id
    arguments: dict[str, Any] = {
        "max_tokens": settings.max_new_tokens,
        "repetition_penalty": settings.repetition_penalty or 1.0,
        "stop_token_ids": [ends] if isinstance(ends, int) else list(ends or ()),
        "temperature": 0.0,
        # Decoded here, as caption_hf does.
        "detokenize": False,
    }
    if settings.do_sample:
        arguments |= {
            "temperature": settings.temperature or 1.0,
            "top_p": settings.top_p or 1.0,
            "top_k": settings.top_k or -1,
        }
    return arguments


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _video(clip: Clip) -> tuple[object, dict[str, object]]:
    return clip.frames, {**metadata_of(clip), "do_sample_frames": False}


def _flat(told: dict[str, Any]) -> dict[str, object]:
    """Return arguments without nesting, which vLLM does not take."""
    return {name: value for part in told.values() for name, value in part.items()}


_MISSING: Final = (
    "caption_vllm: vLLM is not installed here: pip install 'lmms-eval-captions[vllm]', in "
    "a clone '.[vllm]', or run vllm serve elsewhere and use caption_openai with its base_url="
)
_CLOSE_S: Final = 30.0


class VllmEngine:
    """An engine whose requests are batched as they come; close it.

    Args:
        arguments: Of ``vllm.AsyncEngineArgs``.
        newer: Such as older versions of vLLM do not have, and do not need.

    Raises:
        SettingsError: If vLLM is not there, or refuses them or the checkpoint.
    """

    def __init__(
        self, arguments: Mapping[str, object], newer: Mapping[str, object] | None = None
    ) -> None:
        self._vllm: Any = require_vllm()
        known = {field.name for field in fields(self._vllm.AsyncEngineArgs)}
        also = {name: value for name, value in (newer or {}).items() if name in known}
        try:
            self._engine: Any = self._vllm.AsyncLLMEngine.from_engine_args(
                self._vllm.AsyncEngineArgs(**{**also, **arguments})
            )
        except (TypeError, ValueError, RuntimeError, OSError) as error:
            # vLLM's own log holds what went wrong in its processes.
            raise SettingsError(f"caption_vllm: vLLM does not start: {error}") from error
        self._numbers = count()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="vllm", daemon=True)
        self._thread.start()

    @property
    def is_dead(self) -> bool:
        """True if vLLM's processes have ended, so that it answers nothing more."""
        return bool(getattr(self._engine, "errored", False))

    def submit(self, prompt: Mapping[str, object], sampling: Mapping[str, object]) -> Future[Any]:
        """Queue one prompt; the future holds vLLM's ``RequestOutput``, or a ``CaptionError``.

        Args:
            prompt: As vLLM takes it.
            sampling: Of ``vllm.SamplingParams``.
        """
        return asyncio.run_coroutine_threadsafe(self._answer(prompt, sampling), self._loop)

    def close(self) -> None:
        """End vLLM's processes and free the memory."""
        if self._thread.is_alive():
            self._engine.shutdown()
            self._loop.call_soon_threadsafe(self._end)
            self._thread.join(_CLOSE_S)
            if not self._thread.is_alive():
                self._loop.close()

    def _end(self) -> None:
        """Cancel what is in flight, in the loop's thread."""
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_soon(self._loop.stop)

    async def _answer(self, prompt: Mapping[str, object], sampling: Mapping[str, object]) -> Any:  # noqa: ANN401 (vLLM is imported when it is used)
        final = importlib.import_module("vllm.sampling_params").RequestOutputKind.FINAL_ONLY
        settings = self._vllm.SamplingParams(**sampling, output_kind=final)
        name = f"caption-{next(self._numbers)}"
        last = None
        try:
            async for output in self._engine.generate(prompt, settings, name):
                last = output
        except (ValueError, RuntimeError) as error:
            raise CaptionError(f"vLLM: {error}") from error
        if last is None:
            raise CaptionError("vLLM gave no caption")
        return last


def require_vllm() -> Any:  # noqa: ANN401
    """Return the package vLLM.

    Raises:
        SettingsError: If it is not installed; the text says how it is.
    """
    try:
        return importlib.import_module("vllm")
    except ImportError as error:
        raise SettingsError(f"{_MISSING} ({error})") from error
