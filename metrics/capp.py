"""CapQuiz factuality."""

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
