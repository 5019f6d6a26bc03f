"""What tasks have in common whose captions G-VEval scores: questions, four dimensions, grading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.endpoint.request import Ask, Picture
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.gveval import ACCR, GVeval
from lmms_eval_captions.judges.verdict import ScoresJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Metric, over_videos
from lmms_eval_captions.lmms_eval_tasks.grading import Grading, Label, Logged, Rating
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck
from lmms_eval_captions.lmms_eval_tasks.judge_sight import seen_of
from lmms_eval_captions.lmms_eval_tasks.ratios import of_means
from lmms_eval_captions.metrics.gveval import gveval_expectation, gveval_score
from lmms_eval_captions.model_wrappers.video.frame_strip import Sampling, frame_strip

if TYPE_CHECKING:
    from lmms_eval_captions.lmms_eval_tasks.data.sources import Source


@dataclass(frozen=True, slots=True)
class Comparison:
    """The one question about a caption: how good it is beside references, video, or both."""

    scorer: GVeval
    references: tuple[str, ...]
    picture: Callable[[], Picture] | None
    """Makes what the judge sees, ``None`` where it sees nothing."""


async def judge_question(
    ask: Ask, question: Comparison, caption: str, *, config: JudgeConfig, run: int
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


def strip_of(source: Source, video: str, sampling: Sampling) -> Callable[[], Picture]:
    """Makes the three frames that the judge is shown of a video, when it is asked.

    Args:
        source: The benchmark.
        video: Its name below the benchmark's folder of videos.
        sampling: Which frames.
    """
    return partial(_strip, source, video, sampling)


def _strip(source: Source, video: str, sampling: Sampling) -> Picture:
    return seen_of(
        source, video, lambda path, cache: frame_strip(path, cache=cache, sampling=sampling)
    )


def _no_frames() -> Picture:
    # A picture's tokens do not depend on what it shows.
    return Picture(b"", "image/jpeg")


def unseen(question: Comparison) -> Comparison:
    """The same question without a look at its video, for estimates."""
    return replace(question, picture=None if question.picture is None else _no_frames)


def _expected(judgement: ScoresJudgement, dimensions: Sequence[str]) -> list[float | None]:
    """Expected score along each dimension, in [0, 100]; ``None`` is unscored."""
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


METRICS: Final[Mapping[str, Metric]] = {
    **{name: _metric(name) for name in ACCR},
    "avg": _metric(*ACCR),
}
"""Each dimension's mean score, and the mean of the four."""
HEADLINE: Final = "avg"
HEADLINE_MEANS: Final = "mean of the judge's four ratings of the caption, 0 to 100"
OUTPUT_TOKENS: Final[Mapping[str, int]] = {"gveval": 400}

JUDGE_CHECK: Final[JudgeCheck[Comparison, ScoresJudgement]] = JudgeCheck(
    tell=lambda question: next(iter(question.references), ""),
    # A caption that says nothing may be accurate, concise and relevant.
    credit=lambda judgement: judgement.numbers["completeness"] / 100 if judgement.numbers else None,
    said=lambda _question, judgement: (
        "/".join(f"{number:g}" for number in judgement.numbers.values()) or None
    ),
    silent=frozenset({"/".join("0" for _ in ACCR)}),
    n_anchors=6,
)
"""Without references there is no caption that is known to be right, and so no anchor."""


def _label(logged: Logged) -> Label | None:
    """The numbers that the judge wrote."""
    numbers = logged["numbers"]
    return Label(ratings={name: float(numbers[name]) for name in ACCR}) if numbers else None


def _rated(_logged: Logged, label: Label) -> Mapping[str, object]:
    numbers = dict(label.ratings)
    return {
        "numbers": numbers,
        "distributions": {name: ((number, 1.0),) for name, number in numbers.items()},
    }


_MEANINGS: Final = {
    "accuracy": "what the caption says is right",
    "completeness": "nothing that matters is missing",
    "conciseness": "nothing is said that need not be",
    "relevance": "it speaks of what matters in the video",
}


def grading(references: Callable[[Mapping[str, object]], Sequence[str]]) -> Grading:
    """What a person is asked in the judge's place.

    Args:
        references: Reference captions of a document that the person is shown.
    """
    return Grading(
        asks="Rate the caption along each dimension, 0 to 100.",
        ratings=tuple(
            Rating(name=name, low=0, high=100, text=f"{name.capitalize()}: {_MEANINGS[name]}")
            for name in ACCR
        ),
        needs_data=True,
        references=references,
        of_judge=_label,
        judgement=_rated,
    )


def scoring(judgements: Sequence[ScoresJudgement], _fields: Mapping[str, object]) -> dict[str, str]:
    """The field of the signature that says what the scores were read from."""
    scorings = sorted({j.scoring for j in judgements if j.scoring is not None})
    return {"scoring": "+".join(scorings)} if scorings else {}
