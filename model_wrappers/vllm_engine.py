"""Engine of vLLM in this process: prompts in from any thread, futures out."""

from __future__ import annotations

import asyncio
import importlib
import threading
from concurrent.futures import Future
from dataclasses import fields
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import CaptionError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
