"""How many frames, and how large: between what they take and what the model has room for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.generation import DEFAULT_MAX_NEW_TOKENS
from lmms_eval_captions.model_wrappers.hf.budget import Budget
from lmms_eval_captions.model_wrappers.hf.frame_size import SOFT_TOKENS, FrameSize, soft_tokens
from lmms_eval_captions.model_wrappers.hf.measuring import Measured, tokens_of_group

if TYPE_CHECKING:
    from lmms_eval_captions.model_wrappers.hf.inputs import Showing
    from lmms_eval_captions.model_wrappers.hf.prompts import Processor

DEFAULT_FRAMES: Final = 32
"""Source: CapQuiz, section 4.2."""
FRAME_TOKENS: Final = 768
"""Most tokens of a group of frames unless the user says otherwise.

Source: qwen-vl-utils, ``VIDEO_MAX_TOKEN_NUM``; the default of transformers' own class."""
CLIP_TOKENS: Final = 16_384
"""Most tokens of a clip unless the user says otherwise: what an accelerator holds, too."""
PROMPT_TOKENS: Final = 256
"""Room for the prompts of the five benchmarks; the longest is VDC's, of some 60 words."""
_FEWEST_TOKENS: Final = 64
"""Fewest tokens of a frame for which more frames are shown: 8 by 8, below which little is seen."""
_NO_LIMIT: Final = 2**31
_TRIES: Final = 4
_MARGIN: Final = 0.97
"""Sides are rounded to whole patches: aiming a little lower gets there."""
_LARGEST: Final = 1920 * 1080
"""Pixels of the frames of which a processor that has its own way is thought to be shown."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asks for; ``None`` is left to us."""

    n_frames: int | None = None
    frame_pixels: int | None = None


@dataclass(frozen=True, slots=True)
class Fitting:
    """What is known of a processor, and asked of it: ``sized()`` or ``unsized()`` is the budget."""

    processor: Processor
    showing: Showing
    measured: Measured
    wanted: Wanted
    n_positions: int | None
    is_sized: bool
    """Whether the user's arguments of the processor name a size."""

    @property
    def room(self) -> int:
        """Tokens that the model holds beside the prompt and what it writes."""
        if self.n_positions is None:
            return _NO_LIMIT
        beside = self.measured.n_text + PROMPT_TOKENS + DEFAULT_MAX_NEW_TOKENS
        # A model that holds little: half of it is for what is shown.
        return max(self.n_positions - beside, self.n_positions // 2)

    @property
    def clip_tokens(self) -> int:
        """Tokens of a clip at most, where the user does not say."""
        return min(self.room, CLIP_TOKENS)

    def groups_of(self, n_frames: int) -> int:
        """Groups of so many frames, the last one filled up."""
        return -(-n_frames // self.measured.group)

    def sized(self) -> Budget:
        """Where the processor takes a size."""
        measured = self.measured
        if self.wanted.frame_pixels is not None:
            pixels = self._asked(self.wanted.frame_pixels)
            n_group = pixels // measured.token_pixels + measured.n_beside
            return self._budget(n_group, FrameSize(measured.unit, pixels, is_asked=True), self.room)
        n_frames = self.wanted.n_frames or DEFAULT_FRAMES
        own = self._own_tokens(n_frames)
        if self.is_sized:
            return self._budget(own + measured.n_beside, None, self.room)
        if self.wanted.n_frames is None:
            needed = min(own, _FEWEST_TOKENS) + measured.n_beside
            n_frames = min(n_frames, max(self.clip_tokens // needed, 1) * measured.group)
        share = self.clip_tokens // self.groups_of(n_frames) - measured.n_beside
        n_seen = max(min(share, FRAME_TOKENS, self._own_tokens(n_frames)), 1)
        if measured.unit == "soft tokens":
            n_seen = self._soft_tokens(n_seen)
        size = FrameSize(measured.unit, min(max(share, 1), FRAME_TOKENS) * measured.token_pixels)
        is_own = measured.unit != "clip" and n_seen >= measured.own_tokens
        return self._budget(
            n_seen + measured.n_beside, None if is_own else size, self.clip_tokens, n_frames
        )

    def unsized(self) -> Budget:
        """Where the processor takes none, but may still leave small frames small."""
        n_group, n_pixels = self._tokens_at(_LARGEST)
        asked = self.wanted.frame_pixels
        if asked is not None and n_pixels > asked:
            n_group, max_pixels = self._shrunk(asked, most_pixels=asked)
            if not max_pixels:
                raise SettingsError(
                    f"{type(self.processor).__name__} makes {n_pixels:,} pixels of a "
                    f"frame of 1920 x 1080, and has no way to make at most "
                    f"frame_pixels={asked:,}: leave frame_pixels out, or see its own arguments "
                    "(processor_kwargs)"
                )
            return self._budget(n_group, None, self.room, max_pixels=max_pixels)
        if asked is not None:
            return self._budget(n_group, None, self.room)
        n_frames = self.wanted.n_frames or DEFAULT_FRAMES
        share = self.clip_tokens // self.groups_of(n_frames)
        if n_group > share >= _FEWEST_TOKENS:
            start = n_pixels * share // n_group
            fewer, max_pixels = self._shrunk(start, most_tokens=share)
            if max_pixels:
                return self._budget(fewer, None, self.clip_tokens, max_pixels=max_pixels)
        return self._budget(n_group, None, self.clip_tokens)

    def _budget(
        self,
        n_group: int,
        frame_size: FrameSize | None,
        room: int,
        n_frames: int | None = None,
        *,
        max_pixels: int | None = None,
    ) -> Budget:
        measured = self.measured
        fitting = max(room // max(n_group, 1), 1) * measured.group
        chosen = n_frames or min(DEFAULT_FRAMES, fitting)
        return Budget(
            n_frames=self.wanted.n_frames or chosen,
            frame_size=frame_size,
            max_pixels=max_pixels,
            pixels=(n_group - measured.n_beside) * measured.token_pixels or max_pixels,
            n_group=n_group,
            group=measured.group,
            n_text=measured.n_text,
            positions=self.n_positions,
            is_row=measured.is_row,
            are_frames_given=self.wanted.n_frames is not None,
        )

    def _own_tokens(self, n_frames: int) -> int:
        """Tokens of a group of frames by the checkpoint."""
        own = self.measured.own_tokens
        return own // self.groups_of(n_frames) if self.measured.unit == "clip" else own

    def _asked(self, pixels: int) -> int:
        """The user's pixels, where the processor can make frames as small."""
        measured = self.measured
        fewest = measured.token_pixels
        if measured.unit == "soft tokens":
            fewest *= self._soft_tokens(1)
            if pixels >= fewest:
                videos: Any = self.processor.video_processor  # type: ignore[attr-defined] # it takes soft tokens
                return soft_tokens(videos, pixels) * measured.token_pixels
        if pixels < fewest:
            raise SettingsError(
                f"frame_pixels={pixels:,} is less than {fewest:,}, the smallest frame "
                f"that {type(self.processor).__name__} makes"
            )
        return pixels

    def _soft_tokens(self, n_seen: int) -> int:
        videos: Any = self.processor.video_processor  # type: ignore[attr-defined] # it takes soft tokens
        return soft_tokens(videos, n_seen * self.measured.token_pixels) or SOFT_TOKENS[0]

    def _tokens_at(self, pixels: int) -> tuple[int, int]:
        return tokens_of_group(self.processor, self.showing, self.measured, pixels)

    def _shrunk(
        self, start: int, *, most_tokens: int = _NO_LIMIT, most_pixels: int = _NO_LIMIT
    ) -> tuple[int, int]:
        """Tokens of a group, and the area to which frames are shrunk for it; 0 if nothing helps."""
        area = start
        for _ in range(_TRIES):
            n_group, n_pixels = self._tokens_at(area)
            factor = min(most_tokens / max(n_group, 1), most_pixels / max(n_pixels, 1))
            if factor >= 1:
                return n_group, area
            area = max(int(area * factor * _MARGIN), 1)
        return 0, 0
