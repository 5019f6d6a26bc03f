"""CapQuiz (section 3.4): precision, recall, F1, and how often captions do not say.

Each takes a verdict per question, of any number of captions, and returns a percentage in [0, 100];
of all but ``abstain`` higher is better. ``None`` is unscored and leaves the denominator; ``nan`` if
the denominator is 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

from lmms_eval_captions.judges.verdict import QuizOutcome


def capp(verdicts: Iterable[QuizOutcome | None]) -> float:
    """Return factuality (CapP): TP / (TP + FP), how many of the determinate answers are right.

    >>> capp(["true_positive", "false_positive", "false_negative", None])
    50.0
    """
    answered = [v for v in verdicts if v in ("true_positive", "false_positive")]
    return 100.0 * answered.count("true_positive") / len(answered) if answered else nan


def capr(verdicts: Iterable[QuizOutcome | None]) -> float:
    """Return coverage (CapR): TP / N, how many of all questions are answered right.

    >>> capr(["true_positive", "false_positive", "false_negative", "false_negative", None])
    25.0
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    return 100.0 * scored.count("true_positive") / len(scored) if scored else nan


def capf1(verdicts: Iterable[QuizOutcome | None]) -> float:
    """Return the overall score (CapF1): the harmonic mean of factuality and coverage.

    Computed as 2 TP / (TP + FP + N), which is the same, but 0 if nothing is answered right.

    >>> capf1(["true_positive", "true_positive", "false_positive", "false_negative", None])
    57.142857142857146
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    n_right, n_wrong = scored.count("true_positive"), scored.count("false_positive")
    return 200.0 * n_right / (n_right + n_wrong + len(scored)) if scored else nan


def abstain(verdicts: Iterable[QuizOutcome | None]) -> float:
    """Return how many of all questions are answered "cannot be determined"; lower is better.

    >>> abstain(["true_positive", "false_positive", "false_negative", "false_negative", None])
    50.0
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    return 100.0 * scored.count("false_negative") / len(scored) if scored else nan
