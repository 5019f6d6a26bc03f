"""CapQuiz (section 3.4): precision, recall and F1."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

from lmms_eval_captions.judges.verdict import QuizOutcome


def capp(verdicts: Iterable[QuizOutcome | None]) -> float:
    """Factuality (CapP): share of the determinate answers from captions that are right.

    Args:
        verdicts: One per question, of any number of captions; ``None`` is unscored.

    Returns:
        Percentage in [0, 100], higher is better; ``nan`` when no answer was determinate.

    Source:
        CapQuiz, section 3.4: TP / (TP + FP).

    >>> capp(["true_positive", "false_positive", "false_negative", None])
    50.0
    """
    answered = [v for v in verdicts if v in ("true_positive", "false_positive")]
    return 100.0 * answered.count("true_positive") / len(answered) if answered else nan


def capr(verdicts: Iterable[QuizOutcome | None]) -> float:
    """Coverage (CapR): share of all questions that captions answer right.

    Args:
        verdicts: One per question, of any number of captions; ``None`` is unscored.

    Returns:
        Percentage in [0, 100], higher is better. Unscored questions leave the denominator; ``nan``
        when nothing was scored.

    Source:
        CapQuiz, section 3.4: TP / N.

    >>> capr(["true_positive", "false_positive", "false_negative", "false_negative", None])
    25.0
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    return 100.0 * scored.count("true_positive") / len(scored) if scored else nan


def capf1(verdicts: Iterable[QuizOutcome | None]) -> float:
    """Overall score (CapF1): harmonic mean of factuality (CapP) and coverage (CapR).

    Computed from the counts, 2 TP / (TP + FP + N), which is the same and is 0, not undefined, for
    captions that answer nothing right.

    Args:
        verdicts: One per question, of any number of captions; ``None`` is unscored.

    Returns:
        Percentage in [0, 100], higher is better. Unscored questions leave the denominator; ``nan``
        when nothing was scored.

    Source:
        CapQuiz, section 3.4.

    >>> capf1(["true_positive", "true_positive", "false_positive", "false_negative", None])
    57.142857142857146
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    n_right, n_wrong = scored.count("true_positive"), scored.count("false_positive")
    return 200.0 * n_right / (n_right + n_wrong + len(scored)) if scored else nan
