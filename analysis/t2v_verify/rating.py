"""Ratings of generated videos, 1 to 5: a judge sees frames of a video and of its original.

Source: VidCapBench, section 4.4, figure 4 and table 6, where people rate. The prompt is ours: the
paper prints none.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Ask, Chain, Picture, Reply
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols import reading
from lmms_eval_captions.judges.protocols.asking import JudgeConfig, request_of
from lmms_eval_captions.judges.protocols.prompt import attach_pictures
from lmms_eval_captions.judges.verdict import RatingsJudgement
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION, submit_chains
from lmms_eval_captions.model_wrappers.video.frame_strip import draw_strip
from lmms_eval_captions.model_wrappers.video.frames import read_frames

DIMENSIONS: Final = {
    "VA": "visual aesthetics",
    "SC": "subject consistency",
    "AR": "action relevance",
    "LC": "logical coherence",
}
"""Dimensions of the ratings, by the paper's short names."""
LOWEST: Final = 1
HIGHEST: Final = 5
N_FRAMES: Final = 4
"""Frames of each video that the judge sees."""
Key = tuple[str, str, str]
"""Captioner, generator (empty if there is no such folder) and video, without its ending."""
_JUDGE: Final[Mapping[str, object]] = {"model": "gpt-4o-2024-08-06", "max_tokens": 256}
"""Judge if ``LMMS_CAPTIONS_JUDGE`` names none: the model that judges in the paper."""
_PROMPT: Final = "t2v_rating"
_RATING: Final = re.compile(r"\s*([1-5])(?:\.0+)?\s*", re.ASCII)
_STAND_IN: Final = '{"VA": 3, "SC": 3, "AR": 3, "LC": 3}'

_Ratings = Chain[Sequence[RatingsJudgement]]


def ask_judge(
    videos: Mapping[Key, Path], originals: Mapping[str, Path]
) -> tuple[dict[str, object], list[tuple[Key, Mapping[str, int]]], dict[Key, list[str]]]:
    """Have every generated video rated that has an original; replies are kept as in judging.

    Returns:
        The judge, with the digest of a prompt that is not ours; generated videos with the rating of
        each judge run that could be read; why a generated video has no rating, by judge run.

    Raises:
        SettingsError: If no judge that sees pictures can be asked.
    """
    settings = SESSION.settings()
    config = JudgeConfig.build(_JUDGE, settings)
    if not config.asks_endpoint:
        raise SettingsError(
            f"--judge: expected a judge that sees pictures, LMMS_CAPTIONS_JUDGE is "
            f"{settings.judge!r}; name a vision model"
        )
    settings.require_named_judge(config.model)
    settings.require_judge_access()
    waiting = {
        key: submit_chains(_JUDGE, _chains(path, originals[key[2]]))
        for key, path in videos.items()
        if key[2] in originals
    }
    ratings: list[tuple[Key, Mapping[str, int]]] = []
    unscored: dict[Key, list[str]] = {}
    for key, judged in ((key, wait()) for key, wait in waiting.items()):
        said = [(judgement.numbers, str(judgement.reason)) for judgement in judged.judgements]
        ratings += [(key, numbers) for numbers, _ in said if numbers]
        reasons = [judged.reason] if judged.reason is not None else []
        unscored[key] = [*reasons, *(reason for numbers, reason in said if not numbers)]
    judge = {"model": config.label, "frames": N_FRAMES, "prompt": "ours"}
    return {**judge, **config.prompts.extras([_PROMPT])}, ratings, unscored


def _chains(generated: Path, original: Path) -> Callable[[JudgeConfig], Sequence[_Ratings]]:
    """Return a function that makes a request per judge run."""

    def pictures() -> list[Picture]:
        strips = [list(read_frames(path, N_FRAMES).frames) for path in (original, generated)]
        return [Picture(draw_strip(frames), "image/jpeg") for frames in strips]

    async def chain(ask: Ask, *, config: JudgeConfig, run: int) -> Sequence[RatingsJudgement]:
        messages = config.prompts.load(_PROMPT).render()
        shown = attach_pictures(messages, *await asyncio.to_thread(pictures))
        request = request_of(_PROMPT, shown, config=config, seed=run, stand_in=lambda: _STAND_IN)
        asked = await ask(request, read_ratings)
        return [RatingsJudgement(run=run, **asked.outcome(), numbers=asked.value or {})]

    return lambda config: [partial(chain, config=config, run=run) for run in range(config.runs)]


def read_ratings(reply: Reply) -> dict[str, int] | None:
    """Return the rating along each dimension; ``None`` if the reply cannot be read.

    All objects of the reply must agree. A dimension that is missing, off the scale or not a whole
    number makes the reply unreadable, as does an object that does not end.

    >>> read_ratings(Reply('{"VA": 3, "SC": 4, "AR": 2, "LC": 5}', "stop"))
    {'VA': 3, 'SC': 4, 'AR': 2, 'LC': 5}
    >>> read_ratings(Reply('{"VA": 3, "SC": 4, "AR": 2, "LC": 6}', "stop")) is None
    True
    """
    text = reading.plain(reply)
    parts = reading.apart(text)
    if parts is None or reading.is_declined(parts[1]):
        return None
    ratings: dict[str, int] = {}
    for name in DIMENSIONS:
        stated = [
            _RATING.fullmatch(value) if block.closed and block.is_clear(text, top=None) else None
            for block in parts[0]
            for value in block.values(name.casefold())
        ]
        rating = reading.the_one([int(of[1]) if of else reading.UNCLEAR for of in stated])
        if rating is None:
            return None
        ratings[name] = rating
    return ratings
