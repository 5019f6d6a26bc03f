"""The ``caption_hf`` model, and the base of all captioners by transformers' checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, Captioner, CaptionJob
from lmms_eval_captions.model_wrappers.hf.inputs import Showing, check_frames, frame_size
from lmms_eval_captions.model_wrappers.hf.loading import (
    DTYPES,
    generation_config,
    load_config,
    load_model,
    load_processor,
    n_written,
    new_tokens,
    positions,
    reads_by_encoder,
)
from lmms_eval_captions.model_wrappers.hf.prompts import find_format
from lmms_eval_captions.model_wrappers.hf.sharing import (
    MOST_TOGETHER,
    AnyPart,
    PrefixSharing,
    SharedPart,
    on_device,
)
from lmms_eval_captions.model_wrappers.model_args import (
    Generation,
    at_least_one,
    one_of,
    require_folder,
    true_or_false,
)
from lmms_eval_captions.model_wrappers.video.sampling import sampling_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from transformers import GenerationConfig

    from lmms_eval_captions.model_wrappers.pipeline import PlannedCaption

DEFAULT_FRAMES: Final = 32
"""Source: CapQuiz, section 4.2."""
_TEMPLATE_TOKENS: Final = 20
"""Room for a chat template in the suggested number of frames."""


class CheckpointCaptioner(Captioner):
    """Captions by a checkpoint of the Hugging Face hub, or of a folder.

    Its processor is loaded here, before any weight; a subclass runs the model.

    Arguments are in the table of the README; ``common`` are those of :class:`Captioner`.
    """

    takes = "all"
    prepare_threads = 2
    most_positions: int | None = None
    """Tokens of clip, prompt and caption together, if that is fewer than the model could hold;
    a subclass sets it before ``super().__init__``."""

    def __init__(  # noqa: PLR0913
        self,
        *,
        pretrained: str = "",
        max_num_frames: int | None = None,
        fps: float | None = None,
        dtype: str = "auto",
        revision: str | None = None,
        trust_remote_code: bool = False,
        system_prompt: str | None = None,
        frame_pixels: int | None = None,
        prompt_format: str | None = None,
        **common: object,
    ) -> None:
        if not pretrained:
            raise SettingsError("expected --model_args pretrained=NAME, got none")
        one_of("--model_args: dtype", dtype, DTYPES)
        self.pretrained, self.dtype = str(pretrained), dtype
        self.where: dict[str, Any] = {
            "revision": str(revision or "main"),
            "trust_remote_code": true_or_false("trust_remote_code", trust_remote_code),
        }
        require_folder(self.pretrained)
        super().__init__(**common)  # type: ignore[arg-type] # checked by the base
        n_frames = DEFAULT_FRAMES if max_num_frames is None else max_num_frames
        sampling_of(n_frames, fps)
        pixels = None if frame_pixels is None else at_least_one("frame_pixels", frame_pixels)
        self.config = load_config(self.pretrained, **self.where)
        self.processor = load_processor(self.pretrained, **self.where)
        check_frames(self.processor, max_num_frames, fps, pixels)
        n_frames = getattr(self.processor, "n_frames", None) or n_frames
        self.is_encoder_decoder = reads_by_encoder(self.config)
        # So that batches do not affect captions.
        tokenizer = self.processor.tokenizer
        tokenizer.padding_side = "right" if self.is_encoder_decoder else "left"
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        form = find_format(self.processor, self.config.model_type, prompt_format)
        size = frame_size(self.processor, pixels, n_frames)
        self.showing = Showing(system_prompt, form, frame_size=size)
        if pixels is not None and size is None:
            self.max_pixels = min(self.max_pixels, pixels)
        self.sampling = sampling_of(n_frames, fps)
        held = [n for n in (positions(self.config), self.most_positions) if n is not None]
        self.positions = min(held, default=None)
        """Tokens that the model holds; ``None`` if no limit is known."""
        self._has_fitted = False

    def begin(self, planned: Sequence[PlannedCaption]) -> None:  # noqa: ARG002 (of the base's)
        """Require the first captions of a call to fit."""
        self._has_fitted = False

    def require_fit(self, jobs: Sequence[CaptionJob], n_read: int, n_new: int) -> None:
        """Raise if ``n_read`` input and ``n_new`` caption tokens exceed the model's positions.

        Raises:
            SettingsError: Before the first caption: the others would not fit either.
            DataError: Later, so that it costs only these jobs.
        """
        if self.positions is None or n_read + n_new <= self.positions:
            self._has_fitted = True
            return
        n_frames = max(sum(len(clip.frames) for clip in job.clips) for job in jobs)
        n_text = len(self.processor.tokenizer(jobs[0].prompt)["input_ids"]) + _TEMPLATE_TOKENS
        room = self.positions - n_new - n_text
        fitting = int(n_frames * room / max(1, n_read - n_text))
        help_ = f"max_num_frames={fitting}" if fitting > 0 else "another model"
        message = (
            f"{n_frames} frames and the prompt are {n_read:,} tokens, and captions may have "
            f"{n_new:,}; the model has {self.positions:,} positions: set {help_}, a smaller "
            "frame_pixels if its processor takes it, or fewer new tokens (--gen_kwargs "
            "max_new_tokens=...)"
        )
        if self._has_fitted:
            raise DataError(message)
        raise SettingsError(message)


class CaptionHf(CheckpointCaptioner):
    """Captions by a checkpoint of the Hugging Face hub, or of a folder.

    Qwen2/2.5/3-VL, LLaVA-OneVision, LLaVA-NeXT-Video, InternVL-HF, VideoLLaMA3, SmolVLM and others:
    whatever ``AutoProcessor`` loads next to a model that generates. docs/architectures.md lists
    what is tested. A model whose processor knows no videos is shown the frames as images. Batches
    are padded on the left (on the right for an encoder), so that greedy captions do not depend on
    the batch (except for rounding, in half precision).
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
        """Process frames and prompts while the model generates."""
        parts = self.sharing.prepare(jobs, generation)
        for part in parts:
            own = [jobs[index] for index in part.jobs]
            self.require_fit(own, max(part.n_inputs()), generation.max_new_tokens)
        return parts

    def caption(self, batch: Batch) -> list[Caption]:
        """Generate part by part, if the processor could not put all jobs into one."""
        settings = generation_config(
            self.model.generation_config, self.processor.tokenizer, batch.generation
        )
        captions: dict[int, Caption] = {}
        with torch.inference_mode():
            for part in self.sharing.usable(batch.prepared, batch.jobs, settings):
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
