"""CapQuiz coverage."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

from lmms_eval_captions.judges.verdict import QuizOutcome


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
