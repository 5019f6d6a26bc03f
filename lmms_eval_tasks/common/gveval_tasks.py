"""Base of the benchmarks whose captions G-VEval scores along four dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Ask, Picture
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.gveval import ACCR, GVeval
from lmms_eval_captions.judges.verdict import ScoresJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Metric, over_videos
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck
from lmms_eval_captions.lmms_eval_tasks.ratios import of_means
from lmms_eval_captions.metrics.gveval import gveval_expectation, gveval_score


@dataclass(frozen=True, slots=True)
class Comparison:
    """The one question about a caption: its quality compared with references, video, or both."""

    scorer: GVeval
    references: tuple[str, ...]
    picture: Callable[[], Picture] | None
    """Makes the picture that the judge sees, ``None`` if it sees none."""


NO_PICTURE: Final = Picture(b"", "image/jpeg")
"""Stands for a picture in estimates, as a picture's tokens do not depend on its content."""


def _expected(judgement: ScoresJudgement, dimensions: Sequence[str]) -> list[float | None]:
    """Return the expected score along each dimension, in [0, 100]; ``None`` is unscored."""
    distributions = map(judgement.distributions.get, dimensions)
    return [None if numbers is None else gveval_expectation(numbers) for numbers in distributions]


def _metric(*dimensions: str) -> Metric:
    return Metric(
        score=over_videos(gveval_score),
        scale=1.0,
        ratios=of_means(),
        values=partial(_expected, dimensions=dimensions),
        n_values=len(dimensions),
        field="scores",
    )


class GVevalBenchmark(Benchmark[Comparison, ScoresJudgement]):
    """Each dimension's mean score, and the mean of the four."""

    metrics = {**{name: _metric(name) for name in ACCR}, "avg": _metric(*ACCR)}
    headline = "avg"
    headline_means = "mean of the judge's four ratings of the caption, 0 to 100"
    judge_check = JudgeCheck(
        # Without references there is no caption that is known to be right, and so no anchor.
        tell=lambda question: next(iter(question.references), ""),
        # A caption that says nothing may be accurate, concise and relevant.
        credit=lambda judgement: (
            judgement.numbers["completeness"] / 100 if judgement.numbers else None
        ),
        said=lambda _question, judgement: (
            "/".join(f"{number:g}" for number in judgement.numbers.values()) or None
        ),
        silent=frozenset({"/".join("0" for _ in ACCR)}),
        n_anchors=6,
    )
    output_tokens = {"gveval": 400}
    unseen = staticmethod(
        lambda question: replace(question, picture=question.picture and (lambda: NO_PICTURE))
    )

    async def judge(
        self, ask: Ask, question: Comparison, caption: str, *, config: JudgeConfig, run: int
    ) -> ScoresJudgement:
        """Score one caption, see :meth:`GVeval.judge`."""
        return await question.scorer.judge(
            ask,
            caption,
            references=question.references,
            picture=question.picture,
            config=config,
            run=run,
        )

    def extras(
        self, judgements: Sequence[ScoresJudgement], _fields: Mapping[str, object]
    ) -> dict[str, str]:
        """Return the origin of the scores: probabilities or the plain numbers."""
        scorings = sorted({j.scoring for j in judgements if j.scoring is not None})
        return {"scoring": "+".join(scorings)} if scorings else {}
