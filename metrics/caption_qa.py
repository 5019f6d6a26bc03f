"""Accuracy, coverage and precision of multiple-choice questions answered from captions.

Each takes ``right``, ``wrong`` or ``unknown`` per question and returns a percentage, higher is
better. ``None`` is unscored and leaves the denominator; ``nan`` if the denominator is 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan


def qa_accuracy(verdicts: Iterable[str | None]) -> float:
    """Return the share of questions with the right option; ``unknown`` counts as wrong.

    >>> qa_accuracy(["right", "wrong", "unknown", None])
    33.333333333333336
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    return 100 * scored.count("right") / len(scored) if scored else nan


def qa_coverage(verdicts: Iterable[str | None]) -> float:
    """Return the share of questions that the caption answers at all.

    >>> qa_coverage(["right", "wrong", "unknown", "unknown"])
    50.0
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    return 100 * (len(scored) - scored.count("unknown")) / len(scored) if scored else nan


def qa_precision(verdicts: Iterable[str | None]) -> float:
    """Return the share of right options among the answered questions.

    >>> qa_precision(["right", "wrong", "unknown"])
    50.0
    """
    answered = [verdict for verdict in verdicts if verdict in ("right", "wrong")]
    return 100 * answered.count("right") / len(answered) if answered else nan
