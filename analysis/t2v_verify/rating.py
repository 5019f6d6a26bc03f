"""Ratings of generated videos, 1 to 5: a judge sees frames of a video and of its original.

Source: VidCapBench, section 4.4, figure 4 and table 6, where people rate. The prompt is ours: the
paper prints none.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.endpoint.request import Picture, Reply
from lmms_eval_captions.judges.protocols.asking import request_of
from lmms_eval_captions.judges.protocols.prompt import attach_pictures
from lmms_eval_captions.judges.protocols.reading import (
    UNCLEAR,
    Block,
    Unclear,
    apart,
    ends_clearly,
    is_declined,
    is_doubted,
    plain,
    the_one,
)
from lmms_eval_captions.judges.verdict import ScoresJudgement

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.request import Ask
    from lmms_eval_captions.judges.protocols.asking import JudgeConfig

DIMENSIONS: Final = {
    "VA": "visual aesthetics",
    "SC": "subject consistency",
    "AR": "action relevance",
    "LC": "logical coherence",
}
"""Dimensions of the ratings, by the paper's short names."""
LOWEST: Final = 1
HIGHEST: Final = 5
PROMPT: Final = "t2v_rating"
_RATING: Final = re.compile(r"\s*([1-5])(?:\.0+)?\s*", re.ASCII)
_STAND_IN: Final = '{"VA": 3, "SC": 3, "AR": 3, "LC": 3}'


async def rate(
    ask: Ask, pictures: Callable[[], Sequence[Picture]], *, config: JudgeConfig, run: int
) -> ScoresJudgement:
    """Rate a generated video compared with its original.

    Args:
        ask: How to reach the judge.
        pictures: Makes the frames of the original and those of the generated video, one picture
            each, in a thread of its own.
        config: The judge.
        run: Judge run, sent as the seed, >= 0.

    Raises:
        DataError: If a picture cannot be made.
    """
    messages = config.prompts.load(PROMPT).render()
    shown = attach_pictures(messages, *await asyncio.to_thread(pictures))
    request = request_of(PROMPT, shown, config=config, seed=run, stand_in=lambda: _STAND_IN)
    asked = await ask(request, read_ratings)
    return ScoresJudgement(
        run=run,
        **asked.outcome(),
        numbers=asked.value or {},
        distributions={},
        scoring=None if asked.value is None else "plain",
    )


def read_ratings(reply: Reply) -> dict[str, float] | None:
    """Return the rating along each dimension; ``None`` if the reply cannot be read.

    All objects of the reply must agree. A dimension that is missing, off the scale or not a whole
    number makes the reply unreadable.

    >>> read_ratings(Reply('{"VA": 3, "SC": 4, "AR": 2, "LC": 5}', "stop"))
    {'VA': 3.0, 'SC': 4.0, 'AR': 2.0, 'LC': 5.0}
    >>> read_ratings(Reply('{"VA": 3, "SC": 4, "AR": 2, "LC": 6}', "stop")) is None
    True
    """
    text = plain(reply)
    parts = apart(text)
    if parts is None or is_declined(parts[1]):
        return None
    ratings: dict[str, float] = {}
    for name in DIMENSIONS:
        statements = [each for block in parts[0] for each in _statements(text, block, name)]
        rating = the_one(statements)
        if rating is None:
            return None
        ratings[name] = rating
    return ratings


def _statements(text: str, block: Block, name: str) -> list[float | Unclear]:
    """Return what an object says of a dimension; one that does not end is not relied on."""
    values = block.values(name.casefold())
    unsure = (
        not block.closed
        or is_doubted(text, block.start, block.end)
        or not ends_clearly(text, block.end, top=None, cut=False)
    )
    if values and unsure:
        return [UNCLEAR]
    ratings = map(_RATING.fullmatch, values)
    return [UNCLEAR if rating is None else float(rating[1]) for rating in ratings]
