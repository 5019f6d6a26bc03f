"""Stand-in by transformers for what ``caption_vllm`` uses of vLLM: CI does not install vLLM."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import transformers


class RequestOutputKind(enum.Enum):
    FINAL_ONLY = 2


@dataclass
class AsyncEngineArgs:
    model: str
    revision: str
    trust_remote_code: bool
    dtype: str
    max_model_len: int | None
    enable_prefix_caching: bool
    max_num_seqs: int = 256
    gpu_memory_utilization: float = 0.9
    kv_cache_dtype: str = "auto"
    mm_device_do_normalize: bool = True


@dataclass
class SamplingParams:
    max_tokens: int
    temperature: float
    repetition_penalty: float
    stop_token_ids: list[int]
    detokenize: bool
    output_kind: RequestOutputKind
    top_p: float = 1.0
    top_k: int = -1
    seed: int | None = None


@dataclass
class Engine:
    """Writes greedily what transformers writes for the same prompt, frames and arguments."""

    arguments: AsyncEngineArgs
    prompts: list[Mapping[str, Any]] = field(default_factory=list)
    sampling: list[SamplingParams] = field(default_factory=list)
    is_shut_down: bool = False

    @classmethod
    def from_engine_args(cls, arguments: AsyncEngineArgs) -> Engine:
        engine = cls(arguments)
        auto: Any = transformers
        engine.processor = auto.AutoProcessor.from_pretrained(arguments.model)  # type: ignore[attr-defined] # of the stand-in
        videos = getattr(engine.processor, "video_processor", None)  # type: ignore[attr-defined] # of the stand-in
        if arguments.mm_device_do_normalize and videos is not None:
            # As vLLM's models do themselves, which know the image processor alone.
            pictures = engine.processor.image_processor  # type: ignore[attr-defined] # of the stand-in
            videos.image_mean, videos.image_std = pictures.image_mean, pictures.image_std
        engine.model = auto.AutoModelForImageTextToText.from_pretrained(arguments.model)  # type: ignore[attr-defined] # of the stand-in
        ENGINES.append(engine)
        return engine

    async def generate(
        self, prompt: Mapping[str, Any], sampling: SamplingParams, _name: str
    ) -> AsyncIterator[object]:
        self.prompts.append(prompt)
        self.sampling.append(sampling)
        shown, arguments = prompt["multi_modal_data"], prompt["mm_processor_kwargs"]
        called: dict[str, Any] = {"images": shown["image"]} if "image" in shown else {}
        if "video" in shown:
            told = [
                {k: v for k, v in m.items() if k != "do_sample_frames"} for _, m in shown["video"]
            ]
            frames = [torch.from_numpy(f).permute(0, 3, 1, 2) for f, _ in shown["video"]]
            called |= {"videos": frames, "video_metadata": told}
        owner: Any = self
        inputs = owner.processor(
            text=[prompt["prompt"]], return_tensors="pt", **called, **arguments
        )
        n_read = inputs["input_ids"].shape[1]
        if self.arguments.max_model_len and n_read >= self.arguments.max_model_len:
            raise ValueError(f"The prompt (length {n_read}) exceeds the maximum model length")
        with torch.inference_mode():
            written = owner.model.generate(
                **inputs, max_new_tokens=sampling.max_tokens, do_sample=False
            )
        tokens = written[0, n_read:].tolist()
        yield SimpleNamespace(
            outputs=[SimpleNamespace(token_ids=tokens)],
            prompt_token_ids=list(range(n_read)),
            num_cached_tokens=0 if len(self.prompts) == 1 else n_read // 2,
        )

    def shutdown(self) -> None:
        self.is_shut_down = True


ENGINES: list[Engine] = []
"""All that were made."""


def modules() -> dict[str, ModuleType]:
    vllm, sampling = ModuleType("vllm"), ModuleType("vllm.sampling_params")
    own: Any = vllm
    own.AsyncLLMEngine, own.AsyncEngineArgs, own.SamplingParams = (
        Engine,
        AsyncEngineArgs,
        SamplingParams,
    )
    named: Any = sampling
    named.RequestOutputKind = RequestOutputKind
    return {"vllm": vllm, "vllm.sampling_params": sampling}
