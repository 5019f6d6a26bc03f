"""A checkpoint before its weights: its processor, and what of a clip it is shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lmms_eval_captions.model_wrappers.hf.budget import DEFAULT_FRAMES, fit
from lmms_eval_captions.model_wrappers.hf.inputs import Showing
from lmms_eval_captions.model_wrappers.hf.loading import (
    load_config,
    load_processor,
    prepare_tokenizer,
    reads_by_encoder,
)
from lmms_eval_captions.model_wrappers.hf.positions import positions
from lmms_eval_captions.model_wrappers.hf.processor_arguments import check_processor_arguments
from lmms_eval_captions.model_wrappers.hf.prompts import find_format
from lmms_eval_captions.model_wrappers.hf.qformer import check_frames
from lmms_eval_captions.model_wrappers.model_args import at_least_one, mapping_of
from lmms_eval_captions.model_wrappers.video.sampling import sampling_of

if TYPE_CHECKING:
    from transformers import PretrainedConfig

    from lmms_eval_captions.model_wrappers.hf.budget import Budget


@dataclass(frozen=True, slots=True)
class Look:
    """What the user says of frames and prompts; ``None`` is the checkpoint's own, or ours."""

    max_num_frames: int | None = None
    fps: float | None = None
    frame_pixels: object = None
    system_prompt: str | None = None
    processor_kwargs: object = None
    prompt_format: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """What is known of a model before its weights are loaded."""

    config: PretrainedConfig
    processor: Any
    showing: Showing
    budget: Budget
    is_encoder_decoder: bool


def open_checkpoint(
    name: str,
    look: Look,
    *,
    most_positions: int | None = None,
    **where: Any,  # noqa: ANN401
) -> Checkpoint:
    """Load a checkpoint's processor, and find the frames and pixels that it holds.

    Args:
        name: On the hub, or a folder.
        look: What the user says.
        most_positions: Tokens that are held where that is fewer than the model could.
        **where: ``revision`` and ``trust_remote_code``.

    Raises:
        SettingsError: If an argument cannot be used, it has no processor or no form of prompt, or
            the model does not hold the frames that are asked for.
    """
    sampling_of(DEFAULT_FRAMES if look.max_num_frames is None else look.max_num_frames, look.fps)
    asked = look.frame_pixels
    pixels = None if asked is None else at_least_one("frame_pixels", asked)
    arguments = mapping_of("processor_kwargs", look.processor_kwargs)
    config = load_config(name, **where)
    processor = load_processor(name, **where)
    check_frames(processor, look.max_num_frames, look.fps, pixels)
    is_encoder_decoder = reads_by_encoder(config)
    prepare_tokenizer(processor, is_encoder_decoder=is_encoder_decoder)
    check_processor_arguments(processor, arguments)
    form = find_format(processor, config.model_type, look.prompt_format)
    showing = Showing(look.system_prompt, form, arguments=arguments)
    held = [n for n in (positions(config), most_positions) if n is not None]
    budget = fit(
        processor,
        showing,
        n_frames=look.max_num_frames,
        frame_pixels=pixels,
        positions=min(held, default=None),
    )
    showing = replace(showing, frame_size=budget.frame_size)
    return Checkpoint(config, processor, showing, budget, is_encoder_decoder)
