"""VCapsBench: AR, IR and CR (equations 1-3)."""

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


def vcapsbench_ir(verdicts: Iterable[Agreement | None]) -> float:
    """Inconsistency rate (IR): share of the questions a caption speaks about that it gets wrong.

    Args:
        verdicts: One per question, of any number of captions; ``None`` is unscored.

    Returns:
        Percentage in [0, 100], lower is better; ``nan`` when no question was positive or negative.

    Source:
        VCapsBench (arXiv 2505.23484), equation 2.

    >>> vcapsbench_ir(["positive", "negative", "unanswerable", "positive", "positive", None])
    25.0
    """
    spoken = [verdict for verdict in verdicts if verdict in ("positive", "negative")]
    return 100.0 * spoken.count("negative") / len(spoken) if spoken else nan


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
