"""Judgements: the records that protocols fill and metrics read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lmms_eval_captions.judges.endpoint.request import NO_USAGE, Usage
from lmms_eval_captions.judges.errors import Failure

Match = Literal["yes", "no"]
Correctness = Literal["correct", "partial", "neutral", "wrong"]
"""Grade of a predicted answer: 2, 1, 0 and -1 of VidCapBench's judge."""
YesNo = Literal["yes", "no", "unanswerable"]
Agreement = Literal["positive", "negative", "unanswerable"]
"""VCapsBench: the caption gives the gold answer, the other one, or does not speak of it."""
QuizOutcome = Literal["true_positive", "false_positive", "false_negative"]
"""CapQuiz: the right option, a wrong one, or "Cannot be determined"."""
Scoring = Literal["logprobs", "plain"]
"""Source of a score: the probabilities of its tokens, or its number alone."""
ScoreDistribution = tuple[tuple[float, float], ...]
"""(number, probability) of every number that a score may be, probabilities summing to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Base of every benchmark's judgement of one question; a verdict of ``None`` is unscored.

    The default values are those of an empty caption, about which no judge is asked.
    """

    run: int
    """Judge run, which is its seed, >= 0."""
    reply: str = ""
    reason: str | None = None
    """Why the question is unscored, else ``None``."""
    failure: Failure | None = None
    """Kind of that reason."""
    cached: bool = False
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchJudgement(Judgement):
    """VDC: one question answered from the caption, and the answer matched with the gold one."""

    question: str
    answer: str
    predicted_answer: str | None
    """The judge's answer from the caption alone, ``None`` if it gave none."""
    verdict: Match | None
    score: float | None
    """Quality of the match in [0, 5]; for ROUGE matching in [0, 1]. ``None`` is unscored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeJudgement(Judgement):
    """VDD: a whole caption compared with the whole reference caption."""

    reference: str
    verdict: Match | None
    score: float | None
    """Quality of the match in [0, 5]; ``None`` is unscored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsJudgement(Judgement):
    """The words of a caption compared with those of a reference caption, without a judge."""

    reference: str
    tokenizer: Literal["ptb"]
    """Splits both texts into words."""
    cider: float
    """In [0, 10]."""
    rouge_l: float
    """In [0, 1]."""
    bleu: tuple[int, ...]
    """Counts that :func:`metrics.bleu.bleu` sums over captions."""
    meteor: tuple[float, ...] | None
    """Counts that :func:`metrics.meteor.meteor` sums; ``None`` if METEOR cannot run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementJudgement(Judgement):
    """VCapsBench: one yes-no question, asked several times about the caption."""

    category: str
    question: str
    answer: YesNo
    asks: tuple[YesNo | None, ...]
    """Answer in each reply, ``None`` if it is unreadable."""
    predicted_answer: YesNo | None
    verdict: Agreement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuizJudgement(Judgement):
    """CapQuiz: one multiple-choice question answered from the caption."""

    category: str
    question: str
    answer: str
    choice: str | None
    verdict: QuizOutcome | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectnessJudgement(Judgement):
    """VidCapBench: one question answered from the caption, and the answer graded."""

    question: str
    answer: str
    dimension: str
    sub_category: str
    predicted_answer: str | None
    """The judge's answer from the caption alone, ``None`` if it gave none."""
    verdict: Correctness | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresJudgement(Judgement):
    """G-VEval: one caption scored along one or more dimensions."""

    numbers: dict[str, float]
    """Dimension to the number that the judge wrote; empty is unscored."""
    distributions: dict[str, ScoreDistribution]
    """Dimension to the numbers that it might have written; the written one alone if the
    scoring is plain."""
    scoring: Scoring | None
    """``plain`` if one of the dimensions is; ``None`` is unscored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingsJudgement(Judgement):
    """CapQuiz's VLLM-as-a-Judge: one caption rated with the frames of its video."""

    numbers: dict[str, int]
    """Dimension to the judge's rating, 1 to 5; empty is unscored."""
