"""Processors that put the marks of pictures before the text themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from lmms_eval_captions.judges.errors import DataError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from transformers import BatchFeature

MARKS_FIRST: Final[Mapping[str, int]] = {
    "Blip2Processor": 1,
    "InstructBlipProcessor": 1,
    "InstructBlipVideoProcessor": 4,
}
"""Frames of a prompt, by processor."""


class MarksFirst:
    """A processor of ``MARKS_FIRST`` with the arguments of others.

    Its Q-Former reads the prompt, too, by a tokenizer of its own. That one counts positions from
    the left, so that it pads on the right, whatever the language model's does.
    """

    chat_template = None

    def __init__(self, processor: Any) -> None:  # noqa: ANN401 (three classes without a common one)
        self._processor = processor
        self.n_frames = MARKS_FIRST[type(processor).__name__]
        """Frames of each clip; shorter clips repeat theirs."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("_"):  # a copy asks before there is anything in it
            raise AttributeError(name)
        return getattr(self._processor, name)

    def __call__(
        self,
        *,
        text: Sequence[str],
        images: Sequence[Sequence[np.ndarray]] | None = None,
        videos: Sequence[torch.Tensor] | None = None,
        **kwargs: object,
    ) -> BatchFeature:
        """Return tokens and pixels of one clip or picture for each text.

        Raises:
            DataError: If a text comes with more or fewer pictures than it can show.
        """
        for unknown in ("padding_side", "video_metadata", "do_sample_frames"):
            kwargs.pop(unknown, None)
        shown: list[Any] = list(videos or images or ())
        if len(shown) != len(text):
            raise DataError(
                f"the model takes one clip or picture for each question, got {len(shown)} for "
                f"{len(text)}"
            )
        visuals = (
            [_repeated(clip, self.n_frames) for clip in shown]
            if self.n_frames > 1
            else [_only(pictures) for pictures in shown]
        )
        return self._processor(text=list(text), images=visuals, **kwargs)  # type: ignore[no-any-return]


def check_frames(
    processor: object, n_frames: int | None, fps: float | None, frame_pixels: int | None
) -> None:
    """Refuse what a processor with a fixed number of frames of a fixed size cannot do.

    Args:
        processor: Any.
        n_frames: The user's ``max_num_frames``.
        fps: The user's.
        frame_pixels: The user's.

    Raises:
        SettingsError: If it is such a processor, and one of them is given.
    """
    if not isinstance(processor, MarksFirst):
        return
    if n_frames not in {None, processor.n_frames} or fps is not None or frame_pixels is not None:
        raise SettingsError(
            f"this model takes exactly {processor.n_frames} frame(s) of a clip, evenly "
            "spaced and of one size: leave out fps, frame_pixels and max_num_frames, got "
            f"fps={fps!r}, frame_pixels={frame_pixels!r}, max_num_frames={n_frames!r}"
        )


def _repeated(clip: torch.Tensor | Sequence[np.ndarray], n_frames: int) -> torch.Tensor:
    """Return a number of frames, evenly spaced: those of a shorter clip several times."""
    frames = (
        clip
        if isinstance(clip, torch.Tensor)
        else torch.from_numpy(np.stack([np.asarray(frame) for frame in clip])).permute(0, 3, 1, 2)
    )
    return frames[np.linspace(0, len(frames) - 1, n_frames).round().astype(int)]


def _only(pictures: Sequence[np.ndarray]) -> np.ndarray:
    if len(pictures) != 1:
        raise DataError(
            f"the model takes one picture a question, got {len(pictures)}: give max_num_frames=1"
        )
    return pictures[0]
