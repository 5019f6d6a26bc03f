"""Made-up questions of each benchmark, and the verdicts that a told judge's replies come to."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, Literal

from judge_server import Say, Script
from lmms_eval_captions.judges.endpoint.request import Chain, Picture
from lmms_eval_captions.judges.protocols import capquiz, vcapsbench, vdc, vidcapbench
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.gveval import GVeval
from lmms_eval_captions.judges.verdict import (
    AgreementJudgement,
    CorrectnessJudgement,
    Judgement,
    MatchJudgement,
    QuizJudgement,
    ScoresJudgement,
)
from told_judge import N_ASKS, OPTIONS, Told, gold, key_of, majority, mark

MODEL: Final = "judge"
N_CALLS: Final = {"vdc": 2, "vidcapbench": 2, "vcapsbench": N_ASKS, "capquiz": 1, "msvd_eval": 1}
"""Benchmark to requests per question."""


def script(told: Told) -> Script:
    return lambda payload: Say(told.text(key_of(payload)))


def chain(
    benchmark: str,
    video: int,
    index: int,
    config: JudgeConfig,
    *,
    setting: Literal["combined", "ref_only"] = "combined",
) -> Chain[Any]:
    """The requests of one question, by the benchmark's own protocol.

    Args:
        benchmark: One of ``N_CALLS``.
        video: Number of the video.
        index: Number of the question; eight questions are about one caption.
        config: The judge.
        setting: Of G-VEval.
    """
    text = f"What is {mark(video, index)}?"
    caption = f"Caption {index // 8} of video {video}. " * 5
    common: dict[str, Any] = {"caption": caption, "config": config, "run": 0}
    if benchmark == "vdc":
        question = vdc.Question(text, gold(video, index))
        return partial(vdc.judge_question, question=question, **common)
    if benchmark == "vidcapbench":
        pair = vidcapbench.Question(text, gold(video, index), "video motion", "object motion")
        return partial(vidcapbench.judge_question, question=pair, **common)
    if benchmark == "vcapsbench":
        fact = vcapsbench.Question("action", text, "yes" if _is_true(index) else "no")
        return partial(vcapsbench.judge_question, question=fact, **common)
    if benchmark == "capquiz":
        quiz = capquiz.Question("Entity", text, OPTIONS, OPTIONS[index % len(OPTIONS)])
        return partial(capquiz.judge_question, question=quiz, **common)
    return partial(
        GVeval(setting).judge,
        caption=f"A caption of {mark(video, index)}.",
        references=["A reference.", "Another one."],
        picture=lambda: Picture(b"a picture", "image/png"),
        config=config,
        run=0,
    )


def expected(
    told: Told, benchmark: str, video: int, index: int, *, has_logprobs: bool = True
) -> str:
    """The verdict that what the judge is told to say comes to, as :func:`shown` writes it."""
    asked = (video, index, 0)
    if benchmark == "vdc":
        verdict, score = told.match(*asked)
        return f"{verdict} {score}"
    if benchmark == "vidcapbench":
        return told.grade(*asked)
    if benchmark == "vcapsbench":
        answer = majority([told.ask(video, index, seed) for seed in range(N_ASKS)])
        is_right = answer == ("yes" if _is_true(index) else "no")
        return "unanswerable" if answer == "unanswerable" else ("negative", "positive")[is_right]
    if benchmark == "capquiz":
        letter, right = told.letter(*asked), index % len(OPTIONS)
        if letter == len(OPTIONS):
            return "false_negative"
        return "true_positive" if letter == right else "false_positive"
    # The server's log-probabilities: a quarter for the number below.
    less = 0.25 if has_logprobs else 0.0
    return " ".join(f"{max(0.0, number - less):.2f}" for number in told.scores(*asked))


def shown(judgement: Judgement) -> str | None:
    """A verdict in one line, ``None`` where there is none."""
    match judgement:
        case MatchJudgement(verdict=str() as verdict, score=score):
            return f"{verdict} {score:g}"
        case ScoresJudgement(distributions=dict() as scores) if scores:
            means = (sum(n * share for n, share in score) for score in scores.values())
            return " ".join(f"{mean:.2f}" for mean in means)
        case CorrectnessJudgement() | AgreementJudgement() | QuizJudgement():
            return judgement.verdict
        case _:
            return None


def _is_true(index: int) -> bool:
    return index % 2 == 0
