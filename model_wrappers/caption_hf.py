"""The ``caption_hf`` model: any vision-language model of transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, CaptionJob
from lmms_eval_captions.model_wrappers.hf.checkpoint_captioner import CheckpointCaptioner
from lmms_eval_captions.model_wrappers.hf.loading import (
    generation_config,
    load_model,
    n_written,
    new_tokens,
)
from lmms_eval_captions.model_wrappers.hf.sharing import (
    MOST_TOGETHER,
    NotShareableError,
    PrefixSharing,
    SharedPart,
    on_device,
)
from lmms_eval_captions.model_wrappers.model_args import true_or_false

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from transformers import GenerationConfig

    from lmms_eval_captions.model_wrappers.hf.sharing import AnyPart
    from lmms_eval_captions.model_wrappers.model_args import Generation


class CaptionHf(CheckpointCaptioner):
    """Captions by a checkpoint of the Hugging Face hub, or of a folder.

    Qwen2/2.5/3-VL, LLaVA-OneVision, LLaVA-NeXT-Video, InternVL-HF, VideoLLaMA3, SmolVLM and others:
    whatever ``AutoProcessor`` loads next to a model that generates. docs/architectures.md lists
    what is tested. A model whose processor knows no videos is shown the frames as images. Batches
    are padded on the left (on the right for an encoder), so that greedy captions do not depend on
    the batch (except for rounding, in half precision).

    Args:
        attn_implementation: As transformers takes it, e.g. ``flash_attention_2``.
        device_map: As transformers takes it; ``auto`` spreads one model over all accelerators.
        share_prefix: If the prompts of one clip share what the model has read of it (true). It is
            switched off with a log line for models that cannot.
        common: ``pretrained``, ``max_num_frames``, ``dtype``, ...; see ``CheckpointCaptioner``.

    Raises:
        SettingsError: If an argument cannot be used, or the checkpoint cannot caption.
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
        self.sharing = PrefixSharing(
            self.model,
            self.processor,
            self.showing,
            batch_size=self.batch_size,
            is_wanted=is_shared and not self.is_encoder_decoder,
        )

    def identity(self) -> Mapping[str, object]:
        """Return the key of kept captions; ``auto`` may be another dtype on another machine."""
        return {**super().identity(), "dtype": str(self.model.dtype)}

    def prepare(self, jobs: Sequence[CaptionJob], generation: Generation) -> list[AnyPart]:
        """Process frames and prompts while the model generates.

        Raises:
            DataError: If inputs and captions are longer than the model's positions.
        """
        parts = self.sharing.prepare(jobs, generation)
        for part in parts:
            own = [jobs[index] for index in part.jobs]
            self.require_fit(own, max(part.n_inputs()), generation.max_new_tokens)
        return parts

    def caption(self, batch: Batch) -> list[Caption]:
        """Generate part by part, if the processor could not put all jobs into one."""
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
            captions.update(zip(part.jobs, self._generate(part, settings), strict=True))
        return [captions[index] for index in range(len(batch.jobs))]

    def _generate(self, part: AnyPart, settings: GenerationConfig) -> list[Caption]:
        if isinstance(part, SharedPart):
            new = self.sharing.generate(part, settings)
        else:
            inputs = on_device(part.inputs, self.model)
            # A checkpoint's own strings to stop at are looked for in text.
            reading = {"tokenizer": self.processor.tokenizer} if settings.stop_strings else {}
            written = self.model.generate(**inputs, **reading, generation_config=settings)
            is_separate = self.is_encoder_decoder
            new = list(new_tokens(written, inputs["input_ids"], is_encoder_decoder=is_separate))
        texts = self.processor.tokenizer.batch_decode(
            new, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        n_outputs = [n_written(tokens[None], settings)[0] for tokens in new]
        return [
            Caption(text, n_input, n_output)
            for text, n_input, n_output in zip(texts, part.n_inputs(), n_outputs, strict=True)
        ]


class CaptionHfChat(CaptionHf):
    """The same captioner behind lmms-eval's chat interface."""

    is_simple = False
