"""The ``caption_hf`` model: any vision-language model of transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, CaptionJob
from lmms_eval_captions.model_wrappers.hf.checkpoint_captioner import CheckpointCaptioner
from lmms_eval_captions.model_wrappers.hf.generation import (
    generation_config,
    n_written,
    new_tokens,
)
from lmms_eval_captions.model_wrappers.hf.loading import load_model
from lmms_eval_captions.model_wrappers.hf.prompt_sharing import MOST_TOGETHER, PromptSharing
from lmms_eval_captions.model_wrappers.hf.shared_generation import NotShareableError, on_device
from lmms_eval_captions.model_wrappers.hf.shared_prefix import SharedPart
from lmms_eval_captions.model_wrappers.model_args import true_or_false

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from transformers import GenerationConfig

    from lmms_eval_captions.model_wrappers.generation import Generation
    from lmms_eval_captions.model_wrappers.hf.prompt_sharing import AnyPart


class CaptionHf(CheckpointCaptioner):
    """Captions by a checkpoint of the Hugging Face hub, or of a folder.

    Qwen2/2.5/3-VL, LLaVA-OneVision, LLaVA-NeXT-Video, InternVL-HF, VideoLLaMA3, SmolVLM and others:
    whatever ``AutoProcessor`` loads beside a model that generates. docs/architectures.md names what
    is tested. A model whose processor knows no videos is shown the frames as images. Batches are
    padded on the left (on the right for an encoder), so that greedy captions do not depend on the
    batch (but for rounding, in half precision).

    Args:
        attn_implementation: As transformers takes it, e.g. ``flash_attention_2``.
        device_map: As transformers takes it; ``auto`` spreads one model over all accelerators.
        share_prefix: Whether the prompts of one clip go through the model together, which encodes
            the clip once for all of them, where the first ones show that its logits stay the same.
        common: ``pretrained``, ``max_num_frames``, ``dtype``, ...; see ``CheckpointCaptioner``.

    Raises:
        SettingsError: If an argument cannot be used, the checkpoint cannot caption, or the model
            does not hold the frames that are asked for.
    """

    without_bearing = frozenset({"share_prefix"})

    def __init__(
        self,
        *,
        attn_implementation: str | None = None,
        device_map: str | None = None,
        share_prefix: bool = True,
        **common: object,
    ) -> None:
        is_shared = true_or_false("share_prefix", share_prefix)
        super().__init__(**common)  # type: ignore[arg-type] # checked by the base
        self.model = load_model(
            self.pretrained,
            self.config,
            dtype=self.dtype,
            attn_implementation=attn_implementation,
            device_map=device_map or {"": self.device},
            **self.where,
        )
        self.prompts_together = MOST_TOGETHER if is_shared else 1
        self.sharing = PromptSharing(
            self.model,
            self.processor,
            self.showing,
            batch_size=self.batch_size,
            is_wanted=is_shared and not self.is_encoder_decoder,
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
            # A checkpoint's own strings to stop at are looked for in text.
            reading = {"tokenizer": self.processor.tokenizer} if settings.stop_strings else {}
            written = self.model.generate(**inputs, **reading, generation_config=settings)
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
