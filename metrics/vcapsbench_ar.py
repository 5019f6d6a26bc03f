"""VCapsBench accuracy."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

from lmms_eval_captions.judges.verdict import Agreement


def vcapsbench_ar(verdicts: Iterable[Agreement | None]) -> float:
    """Accuracy (AR): share of questions that a caption answers as the gold answer does.

    Args:
        verdicts: One per question, of any number of captions; ``None`` is unscored.

    Returns:
        Percentage in [0, 100], higher is better. Unscored questions leave the denominator; ``nan``
        when nothing was scored.

    Source:
        VCapsBench (arXiv 2505.23484), equation 1.

    >>> vcapsbench_ar(["positive", "negative", "unanswerable", "positive", None])
    50.0
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    return 100.0 * scored.count("positive") / len(scored) if scored else nan
