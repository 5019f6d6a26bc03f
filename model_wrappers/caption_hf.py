"""The ``caption_hf`` model: any vision-language model of transformers that has a chat template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, Captioner, CaptionJob
from lmms_eval_captions.model_wrappers.hf.generation import generation_config, n_written
from lmms_eval_captions.model_wrappers.hf.inputs import Part, make_parts
from lmms_eval_captions.model_wrappers.hf.loading import model_class, prepare_tokenizer
from lmms_eval_captions.model_wrappers.video.sampling import sampling_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lmms_eval_captions.model_wrappers.generation import Generation

_DTYPES: Final = ("auto", "bfloat16", "float16", "float32")


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
        common: ``batch_size``, ``device``, ``decode_threads``, ``max_pixels``; see ``Captioner``.

    Raises:
        SettingsError: If an argument cannot be used, or the checkpoint has no chat template.
    """

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

    def identity(self) -> Mapping[str, object]:
        """See ``Captioner``; ``auto`` may be another dtype on another machine."""
        return {**super().identity(), "dtype": str(self.model.dtype)}

    def prepare(self, jobs: Sequence[CaptionJob], generation: Generation) -> list[Part]:  # noqa: ARG002
        """The processor's work, done while the model generates."""
        return make_parts(
            self.processor, jobs, system_prompt=self.system_prompt, frame_pixels=self.frame_pixels
        )

    def caption(self, batch: Batch) -> list[Caption]:
        """Generate, part by part where the processor could not put all jobs into one."""
        parts = batch.prepared
        if not isinstance(parts, list):
            raise TypeError(f"expected what prepare returned, got {parts!r}")
        captions: dict[int, Caption] = {}
        for part in parts:
            captions.update(zip(part.jobs, self._generate(part, batch.generation), strict=True))
        return [captions[index] for index in range(len(batch.jobs))]

    def _generate(self, part: Part, generation: Generation) -> list[Caption]:
        inputs = part.inputs.to(self.model.device, dtype=self.model.dtype)
        own, tokenizer = self.model.generation_config, self.processor.tokenizer
        settings = generation_config(own, tokenizer, generation)
        with torch.inference_mode():
            written = self.model.generate(**inputs, generation_config=settings)
        n_prompt = inputs["input_ids"].shape[1]
        new = written[:, n_prompt:] if written.shape[1] > n_prompt else written
        texts = tokenizer.batch_decode(
            new, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        n_inputs = inputs["attention_mask"].sum(dim=1).tolist()
        n_outputs = n_written(new, settings)
        return [
            Caption(text, int(n_input), n_output)
            for text, n_input, n_output in zip(texts, n_inputs, n_outputs, strict=True)
        ]


class CaptionHfChat(CaptionHf):
    """The same behind lmms-eval's chat interface."""

    is_simple = False
