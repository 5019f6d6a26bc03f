"""The ``caption_vllm`` model: a checkpoint in vLLM's engine, within this process.

Frames, their size and the prompts are those of ``caption_hf``; vLLM batches them as they come, and
keeps what it has read of a clip for the clip's other prompts.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
from dataclasses import fields
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import torch
from loguru import logger
from PIL import Image
from transformers import GenerationConfig

from lmms_eval_captions.judges.errors import CaptionError, SettingsError
from lmms_eval_captions.model_wrappers.caption_hf import CheckpointCaptioner
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, CaptionJob
from lmms_eval_captions.model_wrappers.hf.inputs import at_least, metadata_of, text_of
from lmms_eval_captions.model_wrappers.hf.loading import generation_config
from lmms_eval_captions.model_wrappers.identity import stamped
from lmms_eval_captions.model_wrappers.model_args import Generation, at_least_one, mapping_of
from lmms_eval_captions.model_wrappers.results import Promises

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from lmms_eval_captions.model_wrappers.pipeline import PlannedCaption

Prompt = dict[str, Any]
"""vLLM's ``TextPrompt``."""
_OURS: Final = ("model", "revision", "trust_remote_code", "dtype", "max_model_len")
"""Engine arguments that have an argument of their own here."""
_WITHOUT_BEARING: Final = frozenset(
    (
        "block_size", "cpu_offload_gb", "data_parallel_size", "disable_log_stats",
        "distributed_executor_backend", "download_dir", "enable_chunked_prefill",
        "enable_prefix_caching", "enforce_eager", "gpu_memory_utilization",
        "kv_cache_memory_bytes", "max_num_batched_tokens", "max_num_seqs",
        "num_gpu_blocks_override", "pipeline_parallel_size", "swap_space", "tensor_parallel_size",
    )
)  # fmt: skip
"""Engine arguments that say how fast, and where, captions are written, not which."""
_CLOSE_S: Final = 30.0


class CaptionVllm(CheckpointCaptioner):
    """Captions by a checkpoint of the Hugging Face hub, or of a folder, in vLLM's engine.

    One process serves all accelerators: ``tensor_parallel_size`` spreads one model over several,
    ``data_parallel_size`` runs several copies. ``--batch_size`` has no bearing.

    Arguments are in the table of the README.
    """

    without_bearing = frozenset({"concurrency", "engine_args"})

    def __init__(
        self,
        *,
        max_model_len: int | None = None,
        concurrency: int = 32,
        engine_args: str | Mapping[str, object] | None = None,
        **common: object,
    ) -> None:
        n_under_way = at_least_one("concurrency", concurrency)
        if max_model_len is not None:
            self.most_positions = at_least_one("max_model_len", max_model_len)
        self._engine_args = mapping_of("engine_args", engine_args)
        if ours := sorted(set(self._engine_args) & set(_OURS)):
            raise SettingsError(
                f"caption_vllm: engine_args: {', '.join(ours)} are arguments of caption_vllm itself"
            )
        require_vllm()
        super().__init__(**common)  # type: ignore[arg-type] # checked by the base
        if self.world_size > 1:
            raise SettingsError(
                f"caption_vllm runs in one process, got {self.world_size}: start lmms-eval without "
                "accelerate or torchrun, and give engine_args=tensor_parallel_size:N, or "
                "data_parallel_size:N for N copies"
            )
        try:
            self._own_generation = GenerationConfig.from_pretrained(
                self.pretrained, revision=self.where["revision"]
            )
        except OSError:
            self._own_generation = GenerationConfig.from_model_config(self.config)
        self._promises = Promises(n_under_way, lambda error: f"vLLM: {error!r}")
        self._n_read = self._n_kept = 0
        self._engine = _Engine(
            {
                "model": self.pretrained,
                **self.where,
                "dtype": self.dtype,
                "max_model_len": self.positions,
                "enable_prefix_caching": True,
                **self._engine_args,
            }
        )

    def identity(self) -> Mapping[str, object]:
        """Return the key of kept captions, with the engine arguments that affect captions."""
        used = {k: v for k, v in self._engine_args.items() if k not in _WITHOUT_BEARING}
        return {**super().identity(), "engine_args": stamped(used)}

    def begin(self, planned: Sequence[PlannedCaption]) -> None:
        """Refuse beams, which vLLM's engine does not have."""
        for asked in planned:
            if asked.generation.num_beams > 1:
                raise SettingsError(
                    f"caption_vllm: {asked.task} asks for num_beams={asked.generation.num_beams}, "
                    "and vLLM has no beams: give --gen_kwargs num_beams=1, or use caption_hf"
                )
        super().begin(planned)

    def prepare(
        self,
        jobs: Sequence[CaptionJob],
        generation: Generation,  # noqa: ARG002
    ) -> list[Prompt]:
        """Return questions and frames; vLLM calls the checkpoint's processor itself."""
        return [self._prompt(job) for job in jobs]

    def _prompt(self, job: CaptionJob) -> Prompt:
        # vLLM's tokenizer writes the start token.
        start = getattr(self.processor.tokenizer, "bos_token", None) or ""
        prompt: Prompt = {"prompt": text_of(self.processor, job, self.showing).removeprefix(start)}
        video_processor: Any = getattr(self.processor, "video_processor", None)
        clips = [job.clips[part] for part in job.content if isinstance(part, int)]
        videos = [c for c in clips if video_processor is not None and not c.is_image]
        pictures = [Image.fromarray(f) for c in clips if c not in videos for f in c.frames]
        shown: dict[str, object] = {"image": pictures} if pictures else {}
        arguments: dict[str, object] = {"do_sample_frames": False} if videos else {}
        if videos:
            videos = [at_least(clip, video_processor) for clip in videos]
            shown["video"] = [
                (clip.frames, {**metadata_of(clip), "do_sample_frames": False}) for clip in videos
            ]
        if self.showing.frame_size is not None:
            counts = [len(clip.frames) for clip in videos]
            size: dict[str, Any] = self.showing.frame_size.arguments(
                self.processor, counts, has_pictures=bool(pictures)
            )
            # vLLM takes no arguments within arguments.
            arguments |= {name: value for part in size.values() for name, value in part.items()}
        return {**prompt, "multi_modal_data": shown, "mm_processor_kwargs": arguments}

    def caption(self, batch: Batch) -> list[Future[Caption]]:
        """Hand the jobs to the engine; waits only where many are under way already."""
        if self._engine.is_dead:  # the other clips would be read for nothing
            raise CaptionError(
                "vLLM's engine has ended, its own words are in the log above; captions so far are "
                "kept: run the same command again, where it lacked memory with "
                "engine_args=gpu_memory_utilization:0.8 or a smaller max_num_frames"
            )
        settings = generation_config(
            self._own_generation, self.processor.tokenizer, batch.generation
        )
        ends = settings.eos_token_id
        sampling: dict[str, Any] = {
            "max_tokens": settings.max_new_tokens,
            "repetition_penalty": settings.repetition_penalty or 1.0,
            "stop_token_ids": [ends] if isinstance(ends, int) else list(ends or ()),
            # Decoded here, as caption_hf does.
            "detokenize": False,
            "temperature": 0.0,
        }
        # vLLM's own seed is the same in every run, whatever --seed says.
        seeds = torch.randint(2**31, (len(batch.jobs),)).tolist()
        promises = []
        for prompt, seed in zip(batch.prepared, seeds, strict=True):
            drawn = {
                "temperature": settings.temperature or 1.0,
                "top_p": settings.top_p or 1.0,
                "top_k": settings.top_k or -1,
                "seed": seed,
            }
            given = {**sampling, **drawn} if settings.do_sample else sampling
            ask = partial(self._engine.submit, prompt, given)
            promises.append(self._promises.caption(ask, self._read_output))
        return promises

    def clean(self) -> None:
        """End vLLM's processes before judging begins."""
        if self._n_read:
            share = self._n_kept / self._n_read
            logger.info(
                "{:.0%} of {:,} tokens read were those of an earlier prompt", share, self._n_read
            )
        self._engine.close()
        super().clean()

    def _read_output(self, output: Any) -> Caption:  # noqa: ANN401 (vLLM is imported when it is used)
        tokens = list(output.outputs[0].token_ids)
        n_input = len(output.prompt_token_ids or ())
        self._n_read += n_input
        self._n_kept += output.num_cached_tokens or 0
        text = self.processor.tokenizer.decode(
            tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return Caption(text, n_input, len(tokens))


class CaptionVllmChat(CaptionVllm):
    """The same behind lmms-eval's chat interface."""

    is_simple = False


class _Engine:
    """A vLLM engine whose requests are batched as they come; ``arguments`` are vLLM's."""

    def __init__(self, arguments: Mapping[str, object]) -> None:
        self._vllm: Any = require_vllm()
        # vLLM 0.32 scales all pixels as the checkpoint's image processor does if it is left to it,
        # its videos, too (``mm_input_norm.py``); earlier versions do not know the argument.
        own = "mm_device_do_normalize"
        known = {field.name for field in fields(self._vllm.AsyncEngineArgs)}
        given = {own: False, **arguments} if own in known else arguments
        try:
            self._engine: Any = self._vllm.AsyncLLMEngine.from_engine_args(
                self._vllm.AsyncEngineArgs(**given)
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
        """Queue one prompt; the future holds vLLM's ``RequestOutput``, or a ``CaptionError``."""
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
        last = None
        try:
            name = f"caption-{next(self._numbers)}"
            async for output in self._engine.generate(prompt, settings, name):
                last = output
        except (ValueError, RuntimeError) as error:
            raise CaptionError(f"vLLM: {error}") from error
        if last is None:
            raise CaptionError("vLLM gave no caption")
        return last


def require_vllm() -> Any:  # noqa: ANN401
    """Return the package vLLM; a ``SettingsError`` if it is not installed."""
    try:
        return importlib.import_module("vllm")
    except ImportError as error:
        raise SettingsError(
            "caption_vllm: vLLM is not installed here: pip install 'lmms-eval-captions[vllm]', in "
            "a clone '.[vllm]', or run vllm serve elsewhere and use caption_openai with its "
            f"base_url= ({error})"
        ) from error
