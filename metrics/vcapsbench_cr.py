"""VCapsBench coverage rate."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

from lmms_eval_captions.judges.verdict import Agreement


def vcapsbench_cr(verdicts: Iterable[Agreement | None]) -> float:
    """Coverage rate (CR): share of questions that a caption speaks about, rightly or wrongly.

    Args:
        verdicts: One per question, of any number of captions; ``None`` is unscored.

    Returns:
        Percentage in [0, 100], higher is better. Unscored questions leave the denominator; ``nan``
        when nothing was scored.

    Source:
        VCapsBench (arXiv 2505.23484), equation 3.

    >>> vcapsbench_cr(["positive", "negative", "unanswerable", "unanswerable", None])
    50.0
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    n_spoken = len(scored) - scored.count("unanswerable")
    return 100.0 * n_spoken / len(scored) if scored else nan
