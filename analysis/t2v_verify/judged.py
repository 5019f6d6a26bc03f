"""Ratings by a judge that sees frames of a generated video and of its original."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from lmms_eval_captions.analysis.t2v_verify.rating import PROMPT, rate
from lmms_eval_captions.analysis.t2v_verify.videos import Key
from lmms_eval_captions.judges.endpoint.request import Ask, Chain, Picture
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.verdict import ScoresJudgement
from lmms_eval_captions.lmms_eval_tasks.session import SESSION, submit_chains
from lmms_eval_captions.model_wrappers.video.frame_strip import draw_strip
from lmms_eval_captions.model_wrappers.video.frames import read_frames

N_FRAMES: Final = 4
"""Frames of each video that the judge sees."""
_JUDGE: Final[Mapping[str, object]] = {"model": "gpt-4o-2024-08-06", "max_tokens": 256}
"""Judge if ``LMMS_CAPTIONS_JUDGE`` names none: the model that judges in the paper."""

_Ratings = Chain[Sequence[ScoresJudgement]]


@dataclass(frozen=True, slots=True)
class JudgeRatings:
    """Ratings of all videos by a judge."""

    judge: str
    ratings: list[tuple[Key, dict[str, float]]]
    """Generated videos with the rating of each judge run that could be read."""
    unscored: dict[Key, list[str]]
    """Why a generated video has no rating, by judge run."""
    prompts: dict[str, str]
    """Digest of the prompt if it is not ours, else empty."""


def ask_judge(videos: Mapping[Key, Path], originals: Mapping[str, Path]) -> JudgeRatings:
    """Have every generated video rated that has an original; replies are kept as in judging.

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
    found = JudgeRatings(config.label, [], {}, config.prompts.extras([PROMPT]))
    for key, wait in waiting.items():
        judged = wait()
        if judged.reason is not None:
            found.unscored[key] = [judged.reason]
        for judgement in judged.judgements:
            if judgement.numbers:
                found.ratings.append((key, judgement.numbers))
            else:
                found.unscored.setdefault(key, []).append(str(judgement.reason))
    return found


def _chains(generated: Path, original: Path) -> Callable[[JudgeConfig], Sequence[_Ratings]]:
    """Return a function that makes a request per judge run."""

    async def chain(ask: Ask, *, config: JudgeConfig, run: int) -> Sequence[ScoresJudgement]:
        shown = partial(_pictures, original, generated)
        return [await rate(ask, shown, config=config, run=run)]

    return lambda config: [partial(chain, config=config, run=run) for run in range(config.runs)]


def _pictures(original: Path, generated: Path) -> list[Picture]:
    """Return the frames of both, one picture each."""
    return [
        Picture(draw_strip(list(read_frames(path, N_FRAMES).frames)), "image/jpeg")
        for path in (original, generated)
    ]
