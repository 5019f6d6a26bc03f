"""What the captioners of transformers' checkpoints have in common, whoever runs the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.captioner import Captioner
from lmms_eval_captions.model_wrappers.hf.checkpoint import Look, open_checkpoint
from lmms_eval_captions.model_wrappers.hf.loading import DTYPES
from lmms_eval_captions.model_wrappers.model_args import (
    require_folder,
    shown_name,
    true_or_false,
)
from lmms_eval_captions.model_wrappers.video.sampling import sampling_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_eval_captions.model_wrappers.generation import Generation
    from lmms_eval_captions.model_wrappers.ordering import PlannedCaption


class CheckpointCaptioner(Captioner):
    """Captions by a checkpoint of the Hugging Face hub, or of a folder.

    Its processor is opened here, before any weight is loaded; a subclass runs the model.

    Args:
        pretrained: Name on the hub or folder.
        max_num_frames: Most frames of a clip; so many, evenly spaced, where ``fps`` is not given.
            By default 32, or as many as fit the model's positions.
        fps: Frames a second, at most ``max_num_frames``.
        dtype: ``auto`` (the checkpoint's), ``bfloat16``, ``float16`` or ``float32``.
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
        common: ``batch_size``, ``device``, ``decode_threads``, ``max_pixels``; see ``Captioner``.

    Raises:
        SettingsError: If an argument cannot be used, the checkpoint cannot caption, or the model
            does not hold the frames that are asked for.
    """

    takes = "all"
    prepare_threads = 2
    most_positions: int | None = None
    """Tokens of clip, prompt and caption together, where that is fewer than the model could hold;
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
        look = Look(
            max_num_frames=max_num_frames,
            fps=fps,
            frame_pixels=frame_pixels,
            system_prompt=system_prompt,
            processor_kwargs=processor_kwargs,
            prompt_format=prompt_format,
        )
        checkpoint = open_checkpoint(
            self.pretrained, look, most_positions=self.most_positions, **self.where
        )
        self.config, self.processor = checkpoint.config, checkpoint.processor
        self.showing, self.budget = checkpoint.showing, checkpoint.budget
        self.is_encoder_decoder = checkpoint.is_encoder_decoder
        self.max_pixels = min(self.max_pixels, self.budget.max_pixels or self.max_pixels)
        self.sampling = sampling_of(self.budget.n_frames, fps)
        if self.rank == 0:
            logger.info("{}: {}", shown_name(type(self)), self.budget)

    def begin(self, planned: Sequence[PlannedCaption]) -> None:
        """See whether clips, prompts and captions fit the model's positions together.

        Raises:
            SettingsError: If they do not, and the number of frames is the user's.
        """
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
