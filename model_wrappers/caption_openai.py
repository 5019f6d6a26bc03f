"""The ``caption_openai`` model: any OpenAI-compatible endpoint that sees images or videos.

The judge's engine asks: as many requests in flight as the endpoint takes, retries, and every reply
on disk before it counts, so that no caption is paid for twice.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.endpoint import CACHE_VARIABLE
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Reply, Request
from lmms_eval_captions.judges.endpoint.urls import scrub
from lmms_eval_captions.judges.errors import CaptionError, DataError, SettingsError
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, Captioner, CaptionJob
from lmms_eval_captions.model_wrappers.chat_api import (
    FRAME_PIXELS,
    MAX_NUM_FRAMES,
    Part,
    Pictures,
    billed,
    cost_limit,
    engine_config,
    video_parts,
    with_smaller_pictures,
)
from lmms_eval_captions.model_wrappers.model_args import (
    Generation,
    above_zero,
    at_least_one,
    mapping_of,
    one_of,
)
from lmms_eval_captions.model_wrappers.paid_endings import finishing
from lmms_eval_captions.model_wrappers.results import Promises
from lmms_eval_captions.model_wrappers.video.sampling import Explicit, sampling_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from lmms_eval.api.instance import GenerationResult, Instance

    from lmms_eval_captions.model_wrappers.caption_jobs import Shown, Source

_PROTOCOL: Final = "caption:1"
_FINISH_S: Final = 30.0
"""Wait for replies in flight when a run is stopped; job managers allow about as long."""
_OURS: Final = ("model", "messages", "stream", "n")
"""Fields of the body that the captioner sets."""


class CaptionOpenai(Captioner):
    """Captions by an endpoint such as OpenAI's, vLLM's or SGLang's.

    The key is read from ``OPENAI_API_KEY`` or the variable that ``api_key_env`` names; an endpoint
    on this machine needs none. Captions are kept under ``LMMS_CAPTIONS_CACHE``: a rerun resumes,
    and costs nothing after a finished run. If an endpoint refuses a request as too large (413),
    frames are sent smaller.

    Arguments are in the table of the README.
    """

    takes = "all"
    without_bearing = frozenset({"api_key_env", "base_url", "concurrency", "max_cost", "timeout_s"})
    """The engine keeps replies for every captioner of the model's name; the captions of a run are
    kept, too, so that a rerun need not read the clips to know its requests."""

    def __init__(  # noqa: PLR0913
        self,
        *,
        model: str = "",
        base_url: str | None = None,
        alias: str | None = None,
        send: str = "frames",
        max_num_frames: int | None = None,
        fps: float | None = None,
        frame_pixels: int | None = None,
        detail: str | None = None,
        system_prompt: str | None = None,
        extra_body: str | Mapping[str, object] | None = None,
        max_cost: float | str | None = None,
        concurrency: int = 32,
        timeout_s: float = 300.0,
        api_key_env: str = "OPENAI_API_KEY",
        max_tokens_field: str = "max_tokens",
        **common: object,
    ) -> None:
        if not model:
            raise SettingsError("caption_openai: expected --model_args model=NAME, got none")
        one_of("caption_openai: send", send, ("frames", "video"))
        if detail is not None:
            one_of("caption_openai: detail", detail, ("auto", "low", "high"))
        looks = {
            "max_num_frames": max_num_frames,
            "fps": fps,
            "frame_pixels": frame_pixels,
            "detail": detail,
        }
        without_effect = [name for name, value in looks.items() if value is not None]
        if send == "video" and without_effect:
            raise SettingsError(
                "caption_openai: send=video sends the file as it is, and the server chooses its "
                f"frames: {', '.join(without_effect)} would change nothing. Leave it out, or use "
                'send=frames; on vLLM extra_body={"media_io_kwargs": {"video": {"num_frames": '
                "32}}} says how many"
            )
        n_in_flight = at_least_one("caption_openai: concurrency", concurrency)
        self.model_name = str(model)
        limit_usd = cost_limit(max_cost, self.model_name)
        if send == "video" and limit_usd is not None:
            raise SettingsError(
                "caption_openai: max_cost: what a video costs is not known before it is sent; use "
                "send=frames, or leave max_cost out"
            )
        super().__init__(**common)  # type: ignore[arg-type] # checked by the base
        if not self.reuse:
            raise SettingsError(
                "caption_openai: replies are paid for and always kept: leave reuse out, and set "
                f"{CACHE_VARIABLE} to a new folder to write new captions"
            )
        self.send = send
        # A clip that is sent whole is opened for its first frame: a broken one is not paid for.
        self.sampling = (
            Explicit((0,))
            if send == "video"
            else sampling_of(MAX_NUM_FRAMES if max_num_frames is None else max_num_frames, fps)
        )
        self.frame_pixels = at_least_one(
            "frame_pixels", FRAME_PIXELS if frame_pixels is None else frame_pixels
        )
        self.system_prompt = None if system_prompt is None else str(system_prompt)
        self.extra_body = mapping_of("extra_body", extra_body)
        if ours := sorted(set(self.extra_body) & set(_OURS)):
            raise SettingsError(
                f"caption_openai: extra_body: {', '.join(ours)} cannot be set there; it holds "
                "further fields of the request, such as top_k or chat_template_kwargs"
            )
        seed = self.extra_body.pop("seed", 0)
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise SettingsError(
                f"caption_openai: extra_body: seed: expected a number, got {seed!r}"
            )
        self._seed = seed
        self.timeout_s = above_zero("timeout_s", timeout_s)
        self.max_tokens_field = max_tokens_field
        self._pictures = Pictures(
            frame_pixels=self.frame_pixels, detail=detail, n_threads=self.decode_threads
        )
        self._engine = Engine(
            engine_config(
                base_url,
                api_key_env,
                alias,
                concurrency=n_in_flight,
                # Processes cannot see what the others spend.
                max_cost_usd=None if limit_usd is None else limit_usd / self.world_size,
            )
        )
        key, urls = self._engine.config.api_key, self._engine.config.urls
        self._promises = Promises(
            2 * n_in_flight, lambda error: scrub(f"internal error: {error!r}", key, *urls)
        )

    def identity(self) -> Mapping[str, object]:
        """Return the key of kept captions; the address may come from the environment."""
        return {**super().identity(), "endpoints": self._engine.config.endpoints}

    def prepare(
        self,
        jobs: Sequence[CaptionJob],
        generation: Generation,  # noqa: ARG002
    ) -> list[list[Part]]:
        """Return frames and questions as messages of a chat."""
        messages = []
        for job in jobs:
            content: list[Part] = []
            for part in job.content:
                if isinstance(part, str):
                    content.append({"type": "text", "text": part})
                elif self.send == "video" and not job.clips[part].is_image:
                    # Files may be large: one text for all prompts about it.
                    content += self._pictures.once(job.clips[part], partial(video_parts, job))
                else:
                    content += self._pictures.of(job.clips[part])
            system: list[Part] = []
            if self.system_prompt:
                system.append({"role": "system", "content": self.system_prompt})
            messages.append([*system, {"role": "user", "content": content}])
        return messages

    def caption(self, batch: Batch) -> list[Future[Caption]]:
        """Hand the jobs to the engine; waits only where many are under way already."""
        promises = []
        for messages, job in zip(batch.prepared, batch.jobs, strict=True):
            request = self._request(messages, batch.generation, job.draw)

            async def chain(ask: Ask, request: Request = request) -> Asked[Reply]:
                # An empty reply is asked again; anything else is a caption.
                return await ask(request, lambda reply: reply if reply.text.strip() else None)

            promises.append(self._promises.caption(partial(self._engine.submit, [chain]), _read))
        return promises

    def generate_until(self, requests: Sequence[Instance]) -> list[GenerationResult]:
        """Return captions; whatever ends the call, replies in flight are waited for."""
        with finishing(self._finish):
            finished = super().generate_until(requests)
        # The name may mean another model there.
        own = self._engine.config.endpoints
        others = {k: n for k, n in self._engine.totals().from_store.items() if k not in own}
        if others:
            logger.warning(
                "{:,} captions are replies to the same requests by {!r} at {}, in earlier runs; "
                "with another {} none of them is taken",
                sum(others.values()),
                self.model_name,
                ", ".join(others),
                CACHE_VARIABLE,
            )
        return finished

    def clean(self) -> None:
        """End the engine before judging begins."""
        self._engine.close()
        totals = self._engine.totals()
        if totals.calls or totals.n_from_store:
            logger.info("caption_openai: {}", billed(totals))
        self._pictures.close()
        super().clean()

    def _finish(self) -> None:
        """Keep the replies in flight, which are paid for; nothing more is asked."""
        n_in_flight = self._engine.n_in_flight
        if n_in_flight:
            logger.warning(
                "stopping: {} captions are under way and paid for, their replies are waited for, "
                "{:.0f} s at most; Ctrl-C again ends at once. Replies are kept, the same command "
                "resumes",
                n_in_flight,
                _FINISH_S,
            )
        self._engine.close(_FINISH_S)

    def _decode(self, source: Source) -> Shown:
        """Read no clip that can no longer be asked about (key refused, ``max_cost`` reached)."""
        if isinstance(source, Path):
            reason = self._engine.stopped(
                self.model_name, "a video" if self.send == "video" else "pictures"
            )
            if reason:
                raise DataError(reason)
        return super()._decode(source)

    def _request(self, messages: Sequence[Part], generation: Generation, draw: int = 0) -> Request:
        params: dict[str, object] = {
            "temperature": generation.temperature,
            self.max_tokens_field: generation.max_new_tokens,
        }
        if generation.top_p is not None:
            params["top_p"] = generation.top_p
        return Request(
            protocol=_PROTOCOL,
            model=self.model_name,
            messages=messages,
            params={**params, **self.extra_body},
            # Repeats of a document are other draws: of one seed they would be one reply.
            seed=draw + self._seed,
            timeout_s=self.timeout_s,
            stand_in=lambda: "",
            shrink=partial(with_smaller_pictures, messages),
        )


class CaptionOpenaiChat(CaptionOpenai):
    """The same behind lmms-eval's chat interface."""

    is_simple = False


def _read(answers: Sequence[Asked[Reply]]) -> Caption:
    [answer] = answers
    if answer.value is None:
        raise CaptionError(answer.reason or "no caption came back")
    if answer.cached:
        return Caption(answer.value.text)
    return Caption(answer.value.text, answer.usage.input_tokens, answer.usage.output_tokens)
