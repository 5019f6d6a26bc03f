"""A judge that sees the video rates a caption: trustworthiness, coverage, overall, 1 to 5 each.

Source: CapQuiz, section 4.1 and figure 8, "VLLM-as-a-Judge Prompt".
Deviation: the paper's judge watches the video file; here it is sent frames in order of time, as no
form in which endpoints take videos is common to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols import lexical
from lmms_eval_captions.judges.protocols.judge_request import request_of
from lmms_eval_captions.judges.protocols.prompt import attach_pictures
from lmms_eval_captions.judges.protocols.video_rating_reading import (
    DIMENSIONS,
    HIGHEST,
    LOWEST,
    read_ratings,
)
from lmms_eval_captions.judges.verdict import RatingsJudgement

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.outcome import Ask
    from lmms_eval_captions.judges.endpoint.request import Picture
    from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig

PROMPT: Final = "video_rating"
_WORDS: Final = 10
"""Content words of a caption that the offline stand-in has for a full one."""


@dataclass(frozen=True, slots=True)
class ShownVideo:
    """The one question about a caption: how good it is beside the frames of its video."""

    frames: Callable[[int], Sequence[Picture]]
    """Makes so many frames of the video, in order of time; a shorter video has fewer."""


async def judge_video(
    ask: Ask, question: ShownVideo, caption: str, *, config: JudgeConfig, run: int
) -> RatingsJudgement:
    """Rate one caption.

    Args:
        ask: How to reach the judge.
        question: What the judge is shown; the frames are made in a thread of their own.
        caption: Candidate caption, sent unchanged.
        config: The benchmark's judge, whose ``frames`` says how many frames are shown.
        run: Judge run, sent as the seed, >= 0.

    Raises:
        SettingsError: If the configuration does not say how many frames are shown.
        DataError: If the frames cannot be made.
    """
    if config.frames is None:
        raise SettingsError("metadata.judge: expected frames of a judge that sees the video")
    messages = config.prompts.load(PROMPT).render(candidate_caption=caption)
    pictures = await asyncio.to_thread(question.frames, config.frames)
    request = request_of(
        PROMPT,
        attach_pictures(messages, *pictures),
        config=config,
        seed=run,
        stand_in=partial(_stand_in, caption),
    )
    asked = await ask(request, read_ratings)
    return RatingsJudgement(run=run, **asked.outcome(), numbers=asked.value or {})


def _stand_in(caption: str) -> str:
    """How much a caption says: the stand-in sees nothing."""
    share = min(1.0, len(lexical.content_words(caption)) / _WORDS)
    rating = LOWEST + round(share * (HIGHEST - LOWEST))
    scores = ", ".join(f'"{name}": {rating}' for name in DIMENSIONS)
    return f'{{"analysis": "Words that carry content.", "scores": {{{scores}}}}}'
