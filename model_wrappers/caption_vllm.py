"""The ``caption_vllm`` model: a checkpoint in vLLM's engine, within this process.

Frames, their size and the prompts are those of ``caption_hf``; vLLM batches them as they come, and
keeps what it has read of a clip for the clip's other prompts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import torch
from loguru import logger

from lmms_eval_captions.judges.errors import CaptionError, SettingsError
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, CaptionJob
from lmms_eval_captions.model_wrappers.hf.checkpoint_captioner import CheckpointCaptioner
from lmms_eval_captions.model_wrappers.hf.generation import generation_config
from lmms_eval_captions.model_wrappers.hf.loading import own_generation
from lmms_eval_captions.model_wrappers.hf.vllm import (
    VllmEngine,
    require_vllm,
    sampling_arguments,
    scales_alike,
    vllm_prompt,
)
from lmms_eval_captions.model_wrappers.identity import stamped
from lmms_eval_captions.model_wrappers.model_args import at_least_one, mapping_of
from lmms_eval_captions.model_wrappers.results import Promises

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from lmms_eval_captions.model_wrappers.hf.vllm import Prompt
    from lmms_eval_captions.model_wrappers.model_args import Generation
    from lmms_eval_captions.model_wrappers.pipeline import PlannedCaption

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


class CaptionVllm(CheckpointCaptioner):
    """Captions by a checkpoint of the Hugging Face hub, or of a folder, in vLLM's engine.

    One process serves all accelerators: ``tensor_parallel_size`` spreads one model over several,
    ``data_parallel_size`` runs several copies. ``--batch_size`` has no bearing.

    Args:
        max_model_len: Tokens of a clip, prompt and caption together; by default all positions.
        concurrency: Most captions under way.
        engine_args: Further arguments of vLLM's engine, as JSON or ``name:value;name:value``, such
            as ``tensor_parallel_size:2;gpu_memory_utilization:0.8``.
        common: ``pretrained``, ``max_num_frames``, ``dtype``, ...; see ``CheckpointCaptioner``.

    Raises:
        SettingsError: If an argument cannot be used, vLLM is not installed or does not start.
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
        revision = self.where["revision"]
        self._own_generation = own_generation(self.pretrained, self.config, revision=revision)
        self._promises = Promises(n_under_way, lambda error: f"vLLM: {error!r}")
        self._n_read = self._n_kept = 0
        alike = scales_alike(self.processor, self.showing.arguments)
        self._engine = VllmEngine(
            {
                "model": self.pretrained,
                **self.where,
                "dtype": self.dtype,
                "max_model_len": self.positions,
                "enable_prefix_caching": True,
                **self._engine_args,
            },
            newer={} if alike else {"mm_device_do_normalize": False},
        )

    def identity(self) -> Mapping[str, object]:
        """Return the key of kept captions, with the engine arguments that affect captions."""
        used = {k: v for k, v in self._engine_args.items() if k not in _WITHOUT_BEARING}
        return {**super().identity(), "engine_args": stamped(used)}

    def begin(self, planned: Sequence[PlannedCaption]) -> None:
        """Refuse beams, which vLLM's engine does not have.

        Raises:
            SettingsError: If a task asks for beams.
        """
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
        """Return the prompts; vLLM calls the processor itself."""
        return [vllm_prompt(self.processor, job, self.showing) for job in jobs]

    def caption(self, batch: Batch) -> list[Future[Caption]]:
        """Hand the jobs to the engine; waits only where many are under way already.

        Raises:
            CaptionError: If vLLM's processes have ended: the other clips would be read for nothing.
        """
        if self._engine.is_dead:
            raise CaptionError(
                "vLLM's engine has ended, its own words are in the log above; captions so far are "
                "kept: run the same command again, where it lacked memory with "
                "engine_args=gpu_memory_utilization:0.8 or a smaller max_num_frames"
            )
        if not isinstance(batch.prepared, list):
            raise TypeError(f"expected what prepare returned, got {batch.prepared!r}")
        settings = generation_config(
            self._own_generation, self.processor.tokenizer, batch.generation
        )
        sampling = sampling_arguments(settings)
        # vLLM's own seed is the same in every run, whatever --seed says.
        seeds = torch.randint(2**31, (len(batch.jobs),)).tolist()
        return [
            self._promise(prompt, {**sampling, "seed": seed} if settings.do_sample else sampling)
            for prompt, seed in zip(batch.prepared, seeds, strict=True)
        ]

    def clean(self) -> None:
        """End vLLM's processes before judging begins."""
        if self._n_read:
            share = self._n_kept / self._n_read
            logger.info(
                "{:.0%} of {:,} tokens read were those of an earlier prompt", share, self._n_read
            )
        self._engine.close()
        super().clean()

    def _promise(self, prompt: Prompt, sampling: Mapping[str, object]) -> Future[Caption]:
        return self._promises.caption(
            partial(self._engine.submit, prompt, sampling), self._read_output
        )

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
