"""What a model is shown of a clip, how many tokens that is, and whether it holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmms_eval_captions.judges.errors import DataError, SettingsError

if TYPE_CHECKING:
    from lmms_eval_captions.model_wrappers.hf.frame_size import FrameSize


@dataclass(frozen=True, slots=True)
class Budget:
    """What a model is shown of a clip."""

    n_frames: int
    """Most frames."""
    frame_size: FrameSize | None
    """What the processor is told; ``None``: nothing, its own size is right."""
    max_pixels: int | None
    """Area to which frames are shrunk before the processor sees them; ``None``: it does it."""
    pixels: int | None
    """Most pixels of a frame of a clip of so many; ``None`` where the processor has its own way."""
    n_group: int
    """Tokens of a group of frames at most, 0 where that could not be found out."""
    group: int
    """Frames of a group."""
    n_text: int
    """Tokens of the chat template."""
    positions: int | None
    """Tokens that the model holds, prompt and caption included; ``None``: no limit is known."""
    is_row: bool
    """Whether clips of different lengths may stand in one batch."""
    are_frames_given: bool
    """Whether the number of frames is the user's."""

    @property
    def n_clip(self) -> int:
        """Tokens of a clip at most."""
        return self.n_group * -(-self.n_frames // self.group)

    def __str__(self) -> str:
        """What is said in the log.

        >>> print(Budget(8, None, None, None, 577, 1, 20, 8192, True, False))
        up to 8 frames of a clip, as up to 4,616 of the model's 8,192 positions
        """
        if not self.n_group:
            return f"up to {self.n_frames} frames of a clip; how many tokens they are is not known"
        size = f", of at most {self.pixels:,} pixels" if self.pixels is not None else ""
        of = f" of the model's {self.positions:,} positions" if self.positions else " tokens"
        return f"up to {self.n_frames} frames of a clip{size}, as up to {self.n_clip:,}{of}"

    def check(self, n_prompt: int, max_new_tokens: int) -> int:
        """How many tokens a caption may have.

        Args:
            n_prompt: Tokens of the task's longest prompt.
            max_new_tokens: As the task asks.

        Returns:
            ``max_new_tokens``, or fewer where the model holds no more and the frames are our own
            choice; at least 1.

        Raises:
            SettingsError: If the user's frames leave no room for as many.
        """
        if self.positions is None or not self.n_group:
            return max_new_tokens
        n_shown = self.n_clip + self.n_text + n_prompt
        if n_shown + max_new_tokens <= self.positions:
            return max_new_tokens
        left = self.positions - n_shown
        if left > 0 and not self.are_frames_given:
            return left
        raise SettingsError(self._overflow(n_prompt, max_new_tokens))

    def check_length(self, n_read: int) -> None:
        """Stop at inputs that leave no room for a single word.

        Raises:
            DataError: If there are more of them than positions.
        """
        if self.positions is not None and n_read >= self.positions:
            raise DataError(
                f"what is shown and asked is {n_read:,} tokens, the model has "
                f"{self.positions:,} positions: take a smaller max_num_frames or frame_pixels"
            )

    def n_new(self, n_read: int, max_new_tokens: int) -> int:
        """Tokens that a caption may have: no more than the model has positions for.

        Args:
            n_read: Tokens of its inputs.
            max_new_tokens: As the task asks.
        """
        if self.positions is None:
            return max_new_tokens
        return max(min(max_new_tokens, self.positions - n_read), 1)

    def _overflow(self, n_prompt: int, max_new_tokens: int) -> str:
        beside = self.n_text + n_prompt + max_new_tokens
        fitting = max((self.positions or 0) - beside, 0) // max(self.n_group, 1) * self.group
        needed = self.n_clip + beside
        per = f"{self.group} frames" if self.group > 1 else "frame"
        help_ = f"max_num_frames={fitting}" if fitting else "another model"
        return (
            f"{self.n_frames} frames of {self.n_group:,} tokens per {per}, a prompt of "
            f"{self.n_text + n_prompt:,} and up to {max_new_tokens:,} new ones are {needed:,} "
            f"tokens, the model has {self.positions:,} positions: take {help_}, a smaller "
            "frame_pixels where the model's processor takes it, or fewer new tokens (--gen_kwargs "
            "max_new_tokens=...); without max_num_frames as many are taken as fit"
        )
