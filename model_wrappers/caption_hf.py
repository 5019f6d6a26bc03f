"""The ``caption_hf`` model: any vision-language model of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from loguru import logger

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, Captioner, CaptionJob
from lmms_eval_captions.model_wrappers.hf.checkpoint import Look, open_checkpoint
from lmms_eval_captions.model_wrappers.hf.generation import (
    generation_config,
    n_written,
    new_tokens,
)
from lmms_eval_captions.model_wrappers.hf.loading import DTYPES, load_model
from lmms_eval_captions.model_wrappers.hf.prompt_sharing import MOST_TOGETHER, PromptSharing
from lmms_eval_captions.model_wrappers.hf.shared_generation import NotShareableError, on_device
from lmms_eval_captions.model_wrappers.hf.shared_prefix import SharedPart
from lmms_eval_captions.model_wrappers.model_args import require_folder, true_or_false
from lmms_eval_captions.model_wrappers.video.sampling import sampling_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from transformers import GenerationConfig

    from lmms_eval_captions.model_wrappers.generation import Generation
    from lmms_eval_captions.model_wrappers.hf.prompt_sharing import AnyPart
    from lmms_eval_captions.model_wrappers.ordering import PlannedCaption


class CaptionHf(Captioner):
    """Captions by a checkpoint of the Hugging Face hub, or of a folder.

    Qwen2/2.5/3-VL, LLaVA-OneVision, LLaVA-NeXT-Video, InternVL-HF, VideoLLaMA3, SmolVLM and others:
    whatever ``AutoProcessor`` loads beside a model that generates. docs/architectures.md names what
    is tested. A model whose processor knows no videos is shown the frames as images. Batches are
    padded on the left (on the right for an encoder), so that greedy captions do not depend on the
    batch (but for rounding, in half precision).

    Args:
        pretrained: Name on the hub or folder.
        max_num_frames: Most frames of a clip; so many, evenly spaced, where ``fps`` is not given.
            By default 32, or as many as fit the model's positions.
        fps: Frames a second, at most ``max_num_frames``.
        dtype: ``auto`` (the checkpoint's), ``bfloat16``, ``float16`` or ``float32``.
        attn_implementation: As transformers takes it, e.g. ``flash_attention_2``.
        device_map: As transformers takes it; ``auto`` spreads one model over all accelerators.
        revision: Of the checkpoint.
        trust_remote_code: Whether code of the checkpoint may be run.
        system_prompt: Put before the prompt; by default the chat template's own.
        frame_pixels: Largest area of a frame after the processor's resizing; by default the
            checkpoint's own, or what fits the model's positions.
        processor_kwargs: Further arguments of the processor's call, as JSON or
            ``name:value;name:value``.
        prompt_format: How the model is asked: a name of ``hf.prompt_forms.PROMPT_FORMS`` or a
            file ``*.jinja`` with a chat template; by default the checkpoint's own template, else
            the documented form of its model.
        share_prefix: Whether the prompts of one clip go through the model together, which encodes
            the clip once for all of them, where the first ones show that its logits stay the same.
        common: ``batch_size``, ``device``, ``decode_threads``, ``max_pixels``; see ``Captioner``.

    Raises:
        SettingsError: If an argument cannot be used, the checkpoint cannot caption, or the model
            does not hold the frames that are asked for.
    """

    prepare_threads = 2
    takes = "all"
    without_bearing = frozenset({"share_prefix"})

    def __init__(  # noqa: PLR0913
        self,
        *,
        pretrained: str = "",
        max_num_frames: int | None = None,
        fps: float | None = None,
        dtype: str = "auto",
        attn_implementation: str | None = None,
        device_map: str | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
        system_prompt: str | None = None,
        frame_pixels: int | None = None,
        processor_kwargs: object = None,
        prompt_format: str | None = None,
        share_prefix: bool = True,
        **common: object,
    ) -> None:
        if not pretrained:
            raise SettingsError("caption_hf: expected --model_args pretrained=NAME, got none")
        if dtype not in DTYPES:
            raise SettingsError(f"caption_hf: dtype={dtype!r} is not one of {', '.join(DTYPES)}")
        where: dict[str, Any] = {
            "revision": str(revision or "main"),
            "trust_remote_code": true_or_false("trust_remote_code", trust_remote_code),
        }
        is_shared = true_or_false("share_prefix", share_prefix)
        name = str(pretrained)
        require_folder("caption_hf", name)
        super().__init__(**common)  # type: ignore[arg-type] # checked by the base
        look = Look(
            max_num_frames=max_num_frames,
            fps=fps,
            frame_pixels=frame_pixels,
            system_prompt=system_prompt,
            processor_kwargs=processor_kwargs,
            prompt_format=prompt_format,
        )
        checkpoint = open_checkpoint(name, look, **where)
        self.processor, self.showing = checkpoint.processor, checkpoint.showing
        self.budget, self.is_encoder_decoder = checkpoint.budget, checkpoint.is_encoder_decoder
        self.max_pixels = min(self.max_pixels, self.budget.max_pixels or self.max_pixels)
        self.sampling = sampling_of(self.budget.n_frames, fps)
        if self.rank == 0:
            logger.info("{}: {}", type(self).__name__, self.budget)
        self.model = load_model(
            name,
            checkpoint.config,
            dtype=dtype,
            attn_implementation=attn_implementation,
            device_map=device_map or {"": self.device},
            **where,
        )
        self.prompts_together = MOST_TOGETHER if is_shared else 1
        self.sharing = PromptSharing(
            self.model,
            self.processor,
            self.showing,
            batch_size=self.batch_size,
            is_wanted=is_shared and not self.is_encoder_decoder,
        )

    def begin(self, planned: Sequence[PlannedCaption]) -> None:
        """See whether clips, prompts and captions fit the model's positions together."""
        longest: dict[Generation, str] = {}
        for asked in planned:
            if isinstance(asked.source, Path):
                longest[asked.generation] = max(
                    longest.get(asked.generation, ""), asked.prompt, key=len
                )
        for generation, prompt in longest.items():
            asked_for = generation.max_new_tokens
            n_prompt = len(self.processor.tokenizer(prompt)["input_ids"])
            n_new = self.budget.check(n_prompt, asked_for)
            if n_new < asked_for and self.rank == 0:
                logger.warning(
                    "a clip of {} frames leaves room for captions of {:,} tokens, max_new_tokens "
                    "is {:,}: longer ones are cut off; a smaller max_num_frames leaves more",
                    self.budget.n_frames,
                    n_new,
                    asked_for,
                )

    def identity(self) -> Mapping[str, object]:
        """See ``Captioner``; ``auto`` may be another dtype on another machine."""
        return {
            **super().identity(),
            "dtype": str(self.model.dtype),
            "n_frames": self.budget.n_frames,
            "frame_size": str(self.budget.frame_size),
            "max_pixels": self.max_pixels,
        }

    def prepare(self, jobs: Sequence[CaptionJob], generation: Generation) -> list[AnyPart]:
        """The processor's work, done while the model generates.

        Raises:
            DataError: If what is shown and asked is longer than the model's positions.
        """
        parts = self.sharing.prepare(jobs, generation)
        for part in parts:
            self.budget.check_length(max(_n_inputs(part)))
        return parts

    def caption(self, batch: Batch) -> list[Caption]:
        """Generate, part by part where the processor could not put all jobs into one."""
        if not isinstance(batch.prepared, list):
            raise TypeError(f"expected what prepare returned, got {batch.prepared!r}")
        settings = generation_config(
            self.model.generation_config, self.processor.tokenizer, batch.generation
        )
        with torch.inference_mode():
            try:
                return self._by_parts(batch, batch.prepared, settings)
            except NotShareableError as error:
                self.sharing.give_up(str(error))
            return self._by_parts(batch, batch.prepared, settings)

    def _by_parts(
        self, batch: Batch, prepared: Sequence[AnyPart], settings: GenerationConfig
    ) -> list[Caption]:
        captions: dict[int, Caption] = {}
        for part in self.sharing.usable(prepared, batch.jobs, settings):
            captions.update(self._fitting(part, batch, settings))
        return [captions[index] for index in range(len(batch.jobs))]

    def _fitting(
        self, part: AnyPart, batch: Batch, settings: GenerationConfig
    ) -> dict[int, Caption]:
        """Captions as long as the model's positions allow each of them, by place in the batch."""
        asked_for = batch.generation.max_new_tokens
        longest = [self.budget.n_new(n_read, asked_for) for n_read in _n_inputs(part)]
        n_together = settings.max_new_tokens = min(longest)
        captions = dict(zip(part.jobs, self._generate(part, settings), strict=True))
        for job, n_own in zip(part.jobs, longest, strict=True):
            if n_own > n_together <= (captions[job].n_output_tokens or 0):
                # It was cut off for the sake of others with longer inputs.
                settings.max_new_tokens = n_own
                [captions[job]] = self._generate(self.sharing.alone(batch.jobs, job), settings)
        return captions

    def _generate(self, part: AnyPart, settings: GenerationConfig) -> list[Caption]:
        n_inputs = _n_inputs(part)
        if isinstance(part, SharedPart):
            new = self.sharing.new_tokens(part, settings)
        else:
            inputs = on_device(part.inputs, self.model)
            written = self.model.generate(**inputs, generation_config=settings)
            is_read_apart = self.is_encoder_decoder
            new = list(new_tokens(written, inputs["input_ids"], is_encoder_decoder=is_read_apart))
        texts = self.processor.tokenizer.batch_decode(
            new, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        n_outputs = [n_written(tokens[None], settings)[0] for tokens in new]
        return [
            Caption(text, n_input, n_output)
            for text, n_input, n_output in zip(texts, n_inputs, n_outputs, strict=True)
        ]


def _n_inputs(part: AnyPart) -> list[int]:
    """Tokens that each caption of a part goes on from, padding not counted."""
    if isinstance(part, SharedPart):
        return part.n_inputs()
    return [int(n) for n in part.inputs["attention_mask"].sum(dim=1)]


class CaptionHfChat(CaptionHf):
    """The same behind lmms-eval's chat interface."""

    is_simple = False
