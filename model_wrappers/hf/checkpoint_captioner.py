"""Captioners of transformers' checkpoints, whatever runs the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers.captioner import Captioner
from lmms_eval_captions.model_wrappers.hf.frame_size import check_arguments, frame_size
from lmms_eval_captions.model_wrappers.hf.inputs import Showing, check_frames
from lmms_eval_captions.model_wrappers.hf.loading import (
    DTYPES,
    load_config,
    load_processor,
    positions,
    prepare_tokenizer,
    reads_by_encoder,
)
from lmms_eval_captions.model_wrappers.hf.prompts import find_format
from lmms_eval_captions.model_wrappers.model_args import (
    at_least_one,
    mapping_of,
    require_folder,
    true_or_false,
)
from lmms_eval_captions.model_wrappers.video.sampling import sampling_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob
    from lmms_eval_captions.model_wrappers.pipeline import PlannedCaption

DEFAULT_FRAMES: Final = 32
"""Source: CapQuiz, section 4.2."""
_TEMPLATE_TOKENS: Final = 20
"""Room for a chat template in the suggested number of frames."""


class CheckpointCaptioner(Captioner):
    """Captions by a checkpoint of the Hugging Face hub, or of a folder.

    Its processor is loaded here, before any weight; a subclass runs the model.

    Args:
        pretrained: Name on the hub or folder.
        max_num_frames: Most frames of a clip (32); that number, evenly spaced, without ``fps``.
        fps: Frames a second, at most ``max_num_frames``.
        dtype: ``auto`` (the checkpoint's), ``bfloat16``, ``float16`` or ``float32``.
        revision: Of the checkpoint.
        trust_remote_code: If code of the checkpoint may be run.
        system_prompt: Put before the prompt; by default the chat template's own.
        frame_pixels: Largest area of a frame; by default the checkpoint's own, or what keeps a clip
            to 16,384 tokens.
        processor_kwargs: Further arguments of the processor's call, as JSON or
            ``name:value;name:value``.
        prompt_format: A name of ``hf.prompts.PROMPT_FORMS`` or a file ``*.jinja`` with a chat
            template; by default the checkpoint's own template, else its documented form.
        common: ``batch_size``, ``device``, ``decode_threads``, ``max_pixels``; see ``Captioner``.

    Raises:
        SettingsError: If an argument cannot be used, or the checkpoint cannot caption.
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
        processor_kwargs: object = None,
        prompt_format: str | None = None,
        **common: object,
    ) -> None:
        if not pretrained:
            raise SettingsError("expected --model_args pretrained=NAME, got none")
        if dtype not in DTYPES:
            raise SettingsError(f"--model_args: dtype={dtype!r} is not one of {', '.join(DTYPES)}")
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
        arguments = mapping_of("processor_kwargs", processor_kwargs)
        self.config = load_config(self.pretrained, **self.where)
        self.processor = load_processor(self.pretrained, **self.where)
        check_frames(self.processor, max_num_frames, fps, pixels)
        n_frames = getattr(self.processor, "n_frames", None) or n_frames
        self.is_encoder_decoder = reads_by_encoder(self.config)
        prepare_tokenizer(self.processor, is_encoder_decoder=self.is_encoder_decoder)
        has_size = check_arguments(self.processor, arguments, pixels)
        form = find_format(self.processor, self.config.model_type, prompt_format)
        size = None if has_size else frame_size(self.processor, pixels, n_frames)
        self.showing = Showing(system_prompt, form, frame_size=size, arguments=arguments)
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
        """Raise if inputs and captions are longer than the model's positions.

        Args:
            jobs: Jobs of the inputs.
            n_read: Tokens of the longest input.
            n_new: Longest caption.

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
