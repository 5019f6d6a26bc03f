"""Ratings of a judge that sees frames of a generated video beside those of its original."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from lmms_eval_captions.analysis.t2v_verify.generated import Generated, Key
from lmms_eval_captions.analysis.t2v_verify.rating import PROMPT, rate
from lmms_eval_captions.judges.endpoint.request import Ask, Chain, Picture
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.verdict import ScoresJudgement
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN, judge_anchors
from lmms_eval_captions.model_wrappers.video.frame_strip import draw_strip
from lmms_eval_captions.model_wrappers.video.frames import read_frames

N_FRAMES: Final = 4
"""Of each video, as the judge sees them."""
_JUDGE: Final[Mapping[str, object]] = {"model": "gpt-4o-2024-08-06", "max_tokens": 256}
"""What is asked where ``LMMS_CAPTIONS_JUDGE`` names nobody: the model that judges in the paper."""

_Ratings = Chain[Sequence[ScoresJudgement]]


@dataclass(frozen=True, slots=True)
class JudgeRatings:
    """What a judge said of all videos."""

    judge: str
    ratings: dict[Key, list[dict[str, float]]]
    """Generated video to the ratings of each judge run that could be read."""
    unscored: dict[Key, list[str]]
    """Generated video to why it has no rating in a run."""
    prompts: dict[str, str]
    """A digest of the prompt where it is not ours; else nothing."""


def ask_judge(items: Sequence[Generated], originals: Mapping[str, Path]) -> JudgeRatings:
    """Have every generated video rated that has an original; replies are kept as in judging.

    Raises:
        SettingsError: If no judge that sees pictures can be asked.
    """
    settings = JUDGE_RUN.settings()
    config = JudgeConfig.build(_JUDGE, settings)
    if not config.asks_endpoint:
        raise SettingsError(
            f"--judge: expected a judge that sees pictures, LMMS_CAPTIONS_JUDGE is "
            f"{settings.judge!r}; name a vision model"
        )
    settings.require_named_judge(config.model)
    settings.require_judge_access()
    waiting = [
        (each.key, judge_anchors(_JUDGE, _chains(each.path, originals[each.video])))
        for each in items
        if each.video in originals
    ]
    ratings: dict[Key, list[dict[str, float]]] = {}
    unscored: dict[Key, list[str]] = {}
    for key, wait in waiting:
        judged = wait()
        if judged.reason is not None:
            unscored[key] = [judged.reason]
        for judgement in judged.judgements:
            if judgement.numbers:
                ratings.setdefault(key, []).append(judgement.numbers)
            else:
                unscored.setdefault(key, []).append(str(judgement.reason))
    return JudgeRatings(config.label, ratings, unscored, config.prompts.extras([PROMPT]))


def _chains(generated: Path, original: Path) -> Callable[[JudgeConfig], Sequence[_Ratings]]:
    """One request per judge run."""

    async def chain(ask: Ask, *, config: JudgeConfig, run: int) -> Sequence[ScoresJudgement]:
        shown = partial(_pictures, original, generated)
        return [await rate(ask, shown, config=config, run=run)]

    return lambda config: [partial(chain, config=config, run=run) for run in range(config.runs)]


def _pictures(original: Path, generated: Path) -> list[Picture]:
    """The frames of both, one picture each."""
    return [
        Picture(draw_strip(list(read_frames(path, N_FRAMES).frames)), "image/jpeg")
        for path in (original, generated)
    ]
