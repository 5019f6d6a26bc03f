"""The ``caption_hf`` model: any vision-language model of transformers that has a chat template."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import torch
from loguru import logger

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, Captioner, CaptionJob
from lmms_eval_captions.model_wrappers.hf.generation import generation_config, n_written
from lmms_eval_captions.model_wrappers.hf.inputs import Part, make_parts
from lmms_eval_captions.model_wrappers.hf.loading import model_class, prepare_tokenizer
from lmms_eval_captions.model_wrappers.hf.prompts import prompt_text
from lmms_eval_captions.model_wrappers.hf.shared_generation import generate_shared, why_not
from lmms_eval_captions.model_wrappers.hf.shared_prefix import (
    ProcessorOfThread,
    SharedPart,
    share,
    visual_ids,
)
from lmms_eval_captions.model_wrappers.video.sampling import sampling_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from transformers import GenerationConfig

    from lmms_eval_captions.model_wrappers.generation import Generation

    AnyPart = Part | SharedPart

_DTYPES: Final = ("auto", "bfloat16", "float16", "float32")
_PROMPTS_TOGETHER: Final = 8
"""VDC asks five of each clip."""


class CaptionHf(Captioner):
    """Captions by a checkpoint of the Hugging Face hub, or of a folder.

    Qwen2/2.5/3-VL, LLaVA-OneVision, LLaVA-NeXT-Video, InternVL-HF, VideoLLaMA3, SmolVLM and others:
    whatever ``AutoProcessor`` and ``AutoModelForImageTextToText`` load. A model whose processor
    knows no videos is shown the frames as images. Batches are padded on the left, so that greedy
    captions do not depend on the batch (but for rounding, in half precision).

    Args:
        pretrained: Name on the hub or folder.
        max_num_frames: Most frames of a clip; so many, evenly spaced, where ``fps`` is not given.
        fps: Frames a second, at most ``max_num_frames``.
        dtype: ``auto`` (the checkpoint's), ``bfloat16``, ``float16`` or ``float32``.
        attn_implementation: As transformers takes it, e.g. ``flash_attention_2``.
        device_map: As transformers takes it; ``auto`` spreads one model over all accelerators.
        revision: Of the checkpoint.
        trust_remote_code: Whether code of the checkpoint may be run.
        system_prompt: Put before the prompt; by default the chat template's own.
        frame_pixels: Largest area of a frame after the processor's resizing, for processors that
            take one (Qwen-VL); by default the checkpoint's own.
        share_prefix: Whether the prompts of one clip go through the model together, which then
            encodes the clip once; the first ones are written both ways, and a model whose logits
            differ reads the clip again for each.
        common: ``batch_size``, ``device``, ``decode_threads``, ``max_pixels``; see ``Captioner``.

    Raises:
        SettingsError: If an argument cannot be used, or the checkpoint has no chat template.
    """

    prepare_threads = 2
    without_bearing = frozenset({"share_prefix"})

    def __init__(  # noqa: PLR0913
        self,
        *,
        pretrained: str = "",
        max_num_frames: int = 32,
        fps: float | None = None,
        dtype: str = "auto",
        attn_implementation: str | None = None,
        device_map: str | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
        system_prompt: str | None = None,
        frame_pixels: int | None = None,
        share_prefix: bool = True,
        **common: object,
    ) -> None:
        if not pretrained:
            raise SettingsError("caption_hf: expected --model_args pretrained=NAME, got none")
        if dtype not in _DTYPES:
            raise SettingsError(f"caption_hf: dtype={dtype!r} is not one of {', '.join(_DTYPES)}")
        super().__init__(**common)  # type: ignore[arg-type] # checked by the base
        from transformers import AutoConfig, AutoProcessor

        self.sampling = sampling_of(max_num_frames, fps)
        where: dict[str, Any] = {
            "revision": revision or "main",
            "trust_remote_code": trust_remote_code,
        }
        name = str(pretrained)
        load_processor: Callable[..., Any] = AutoProcessor.from_pretrained
        self.processor = load_processor(name, **where)
        if getattr(self.processor, "chat_template", None) is None:
            raise SettingsError(
                f"caption_hf: {pretrained} has no chat template; take an instruction-tuned "
                "checkpoint, or write a Captioner for it (model_wrappers/README.md)"
            )
        prepare_tokenizer(self.processor)
        self._processors = ProcessorOfThread(self.processor)
        self.system_prompt = system_prompt
        self.frame_pixels = frame_pixels
        config = AutoConfig.from_pretrained(name, **where)  # nosec B615
        self.model = model_class(config).from_pretrained(
            name,
            dtype=dtype if dtype == "auto" else getattr(torch, dtype),
            attn_implementation=attn_implementation,
            device_map=device_map or {"": self.device},
            **where,
        )
        self.model.requires_grad_(requires_grad=False).train(mode=False)
        self._visual_ids = visual_ids(config)
        self._shares: bool | None = None if share_prefix else False
        """``None`` until it was tried."""
        self.prompts_together = _PROMPTS_TOGETHER if share_prefix else 1
        self._most_rows = max(self.batch_size, self.prompts_together)

    def identity(self) -> Mapping[str, object]:
        """See ``Captioner``; ``auto`` may be another dtype on another machine."""
        return {**super().identity(), "dtype": str(self.model.dtype)}

    def prepare(self, jobs: Sequence[CaptionJob], generation: Generation) -> list[AnyPart]:
        """The processor's work, done while the model generates."""
        processor = self._processors.own
        shared: Sequence[AnyPart] | None = None
        if self._shares is not False and generation.num_beams == 1:
            shared = share(
                jobs,
                partial(self._text, processor),
                partial(self._whole, processor),
                tokenizer=processor.tokenizer,
                visual_ids=self._visual_ids,
            )
        return list(shared or self._parts(processor, jobs))

    def caption(self, batch: Batch) -> list[Caption]:
        """Generate, part by part where the processor could not put all jobs into one."""
        parts = batch.prepared
        if not isinstance(parts, list):
            raise TypeError(f"expected what prepare returned, got {parts!r}")
        if any(isinstance(part, SharedPart) for part in parts) and not self._can_share(batch):
            parts = self._parts(self.processor, batch.jobs)
        captions: dict[int, Caption] = {}
        for part in parts:
            captions.update(zip(part.jobs, self._generate(part, batch.generation), strict=True))
        return [captions[index] for index in range(len(batch.jobs))]

    def _text(self, processor: Any, job: CaptionJob) -> str:  # noqa: ANN401
        sees_videos = getattr(processor, "video_processor", None) is not None
        return prompt_text(processor, job, self.system_prompt, sees_videos=sees_videos)

    def _whole(self, processor: Any, jobs: Sequence[CaptionJob]) -> list[Part]:  # noqa: ANN401
        return make_parts(
            processor, jobs, system_prompt=self.system_prompt, frame_pixels=self.frame_pixels
        )

    def _parts(self, processor: Any, jobs: Sequence[CaptionJob]) -> list[Part]:  # noqa: ANN401
        """Every job with its clip, at most ``batch_size`` together."""
        return [
            Part([at + index for index in part.jobs], part.inputs)
            for at in range(0, len(jobs), self.batch_size)
            for part in self._whole(processor, jobs[at : at + self.batch_size])
        ]

    def _can_share(self, batch: Batch) -> bool:
        """Whether the model's captions are the same where prompts share their clip; tried once."""
        if self._shares is None:
            part = next(part for part in batch.prepared if isinstance(part, SharedPart))  # type: ignore[attr-defined] # a list
            tried = part.shortest_and_longest()
            wholes = [
                self._whole(self.processor, [batch.jobs[index]])[0].inputs for index in tried.jobs
            ]
            with torch.inference_mode():
                reason = why_not(self.model, tried, wholes, self._settings(batch.generation))
            self._shares = reason is None
            if reason is not None:
                logger.info(
                    "caption_hf: each prompt of a clip is asked apart, the model cannot share what "
                    "it makes of the clip ({})",
                    reason,
                )
        return self._shares

    def _settings(self, generation: Generation) -> GenerationConfig:
        return generation_config(self.model.generation_config, self.processor.tokenizer, generation)

    def _generate(self, part: AnyPart, generation: Generation) -> list[Caption]:
        settings = self._settings(generation)
        with torch.inference_mode():
            if isinstance(part, SharedPart):
                return self._captions(self._new(part, settings), part.n_inputs(), settings)
            inputs = part.inputs.to(self.model.device, dtype=self.model.dtype)
            written = self.model.generate(**inputs, generation_config=settings)
        n_prompt = inputs["input_ids"].shape[1]
        new = written[:, n_prompt:] if written.shape[1] > n_prompt else written
        n_inputs = inputs["attention_mask"].sum(dim=1).tolist()
        return self._captions(list(new), n_inputs, settings)

    def _new(self, part: SharedPart, settings: GenerationConfig) -> list[torch.Tensor]:
        """New tokens of each job; fewer at once from the first time that they filled the memory."""
        try:
            return generate_shared(self.model, part, settings, most_rows=self._most_rows)
        except torch.OutOfMemoryError:
            if self._most_rows <= self.batch_size:
                raise
        self._most_rows = self.batch_size
        torch.cuda.empty_cache()
        return generate_shared(self.model, part, settings, most_rows=self._most_rows)

    def _captions(
        self, new: Sequence[torch.Tensor], n_inputs: Sequence[int], settings: GenerationConfig
    ) -> list[Caption]:
        texts = self.processor.tokenizer.batch_decode(
            new, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        n_outputs = [n_written(tokens[None], settings)[0] for tokens in new]
        return [
            Caption(text, int(n_input), n_output)
            for text, n_input, n_output in zip(texts, n_inputs, n_outputs, strict=True)
        ]


class CaptionHfChat(CaptionHf):
    """The same behind lmms-eval's chat interface."""

    is_simple = False
