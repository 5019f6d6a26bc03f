"""UGC-VideoCap (arXiv 2507.11336): a caption rated against a human one, visual, audio and details.

One request per caption. The prompt is ours; the authors' is in their repository.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Ask, Reply
from lmms_eval_captions.judges.protocols.asking import (
    JudgeConfig,
    object_schema,
    recall,
    request_of,
)
from lmms_eval_captions.judges.protocols.json_reading import read_json
from lmms_eval_captions.judges.verdict import Judgement

RATED: Final = ("visual", "audio", "details")
"""Dimensions, each rated from 1 to 5."""
_OF_5: Final = re.compile(r"(\d(?:\.\d{1,3})?)\s?(?:(?:/|out of)\s?5)?")
_SCORE: Final = {"type": "integer", "enum": [1, 2, 3, 4, 5]}
_SCHEMA: Final = object_schema(visual=_SCORE, audio=_SCORE, details=_SCORE)


@dataclass(frozen=True, slots=True)
class HumanCaption:
    """Question about a caption: the human one."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingJudgement(Judgement):
    """Ratings of one caption, in [1, 5]; ``None`` is unscored."""

    visual: float | None
    audio: float | None
    details: float | None


async def rate_caption(
    ask: Ask, question: HumanCaption, caption: str, *, config: JudgeConfig, run: int
) -> RatingJudgement:
    """Rate one caption."""

    def stand_in() -> str:
        score = 1 + round(4 * recall(question.text, caption))
        return json.dumps(dict.fromkeys(RATED, score))

    request = request_of(
        "ugc_rating",
        config.prompts.load("ugc_rating").render(reference=question.text, caption=caption),
        config=config,
        seed=run,
        stand_in=stand_in,
        schema=_SCHEMA,
    )
    asked = await ask(request, read_ratings)
    visual, audio, details = asked.value or (None, None, None)
    return RatingJudgement(run=run, visual=visual, audio=audio, details=details, **asked.outcome())


def silent_rating(_question: HumanCaption, run: int) -> RatingJudgement:
    """Return the judgement of an empty caption: 1 in every dimension."""
    return RatingJudgement(run=run, visual=1.0, audio=1.0, details=1.0)


def read_ratings(reply: Reply) -> tuple[float, float, float] | None:
    """Return the ratings in a reply, ``None`` if it cannot be read.

    >>> read_ratings(Reply('{"visual": 4, "audio": 3, "details": 5}', "stop"))
    (4.0, 3.0, 5.0)
    >>> read_ratings(Reply('{"visual": 4, "audio": 3, "details": 6}', "stop")) is None
    True
    """

    def convert(value: object) -> tuple[float, float, float] | None:
        if not isinstance(value, dict):
            return None
        lowered = {str(name).lower(): rating for name, rating in value.items()}
        if len(lowered) < len(value):
            return None
        ratings = [_rating(lowered.get(name)) for name in RATED]
        visual, audio, details = ratings
        if visual is None or audio is None or details is None:
            return None
        return visual, audio, details

    return read_json(reply, convert)


def _rating(value: object) -> float | None:
    if isinstance(value, dict):
        value = value.get("score")
    if isinstance(value, str):
        match = _OF_5.fullmatch(value.strip())
        value = None if match is None else float(match[1])
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 1 <= value <= 5 else None  # type: ignore[operator,arg-type]
