"""Finds how many frames of a clip a model is shown, and how large, so that it holds them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers.generation import DEFAULT_MAX_NEW_TOKENS
from lmms_eval_captions.model_wrappers.hf.budget import Budget
from lmms_eval_captions.model_wrappers.hf.frames_and_room import (
    DEFAULT_FRAMES,
    PROMPT_TOKENS,
    Fitting,
    Wanted,
)
from lmms_eval_captions.model_wrappers.hf.measuring import measure, own_tokens, tokens_of_group
from lmms_eval_captions.model_wrappers.hf.processor_arguments import size_given, without_size

if TYPE_CHECKING:
    from lmms_eval_captions.model_wrappers.hf.inputs import Showing
    from lmms_eval_captions.model_wrappers.hf.prompts import Processor

__all__ = ["DEFAULT_FRAMES", "Wanted", "fit"]

_SMALL: Final = 128 * 128
"""Pixels of a made-up frame at which a processor's arguments are tried."""


def fit(processor: Processor, showing: Showing, wanted: Wanted, n_positions: int | None) -> Budget:
    """Frames and their size, as the user wants them, else so that the model holds them.

    Args:
        processor: Of the checkpoint.
        showing: How it is called.
        wanted: By the user.
        n_positions: Tokens that the model holds, ``None`` where no limit is known.

    Raises:
        SettingsError: If the processor refuses the user's arguments, has no way to make frames as
            small as is asked for, or the model holds no clip of so many frames.
    """
    if only := getattr(processor, "n_frames", None):
        return replace(_unmeasured(wanted, n_positions), n_frames=wanted.n_frames or only)
    size = size_given(showing.arguments)
    if size is not None and wanted.frame_pixels is not None:
        raise SettingsError(
            f"give frame_pixels={wanted.frame_pixels} or a size in processor_kwargs="
            f"{dict(showing.arguments)}, not both"
        )
    try:
        measured = measure(processor, replace(showing, arguments=without_size(showing.arguments)))
        if showing.arguments:
            tokens_of_group(processor, showing, measured, _SMALL)
        if size is not None and measured.token_pixels:
            measured = replace(measured, own_tokens=own_tokens(measured, size))
        fitting = Fitting(
            processor, showing, measured, wanted, n_positions, is_sized=size is not None
        )
        budget = fitting.sized() if measured.token_pixels else fitting.unsized()
    except SettingsError:
        raise
    except (ValueError, TypeError, RuntimeError, LookupError, AttributeError, DataError) as error:
        if wanted.frame_pixels is None and not showing.arguments:
            return _unmeasured(wanted, n_positions)
        raise SettingsError(
            f"{type(processor).__name__} refuses a made-up clip with "
            f"frame_pixels={wanted.frame_pixels}, processor_kwargs={dict(showing.arguments)}: "
            f"{type(error).__name__}: {error}"
        ) from error
    if n_positions is not None and budget.n_clip + budget.n_text >= n_positions:
        budget.check(PROMPT_TOKENS, DEFAULT_MAX_NEW_TOKENS)
    return budget


def _unmeasured(wanted: Wanted, n_positions: int | None) -> Budget:
    """Where a processor takes no made-up frames."""
    return Budget(
        n_frames=wanted.n_frames or DEFAULT_FRAMES,
        frame_size=None,
        max_pixels=None,
        pixels=None,
        n_group=0,
        group=1,
        n_text=0,
        positions=n_positions,
        is_row=False,
        are_frames_given=wanted.n_frames is not None,
    )
