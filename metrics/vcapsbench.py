"""VCapsBench (arXiv 2505.23484): AR, IR and CR (equations 1-3).

Each takes a verdict per question, of any number of captions, and returns a percentage in [0, 100].
``None`` is unscored and leaves the denominator; ``nan`` if the denominator is 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

from lmms_eval_captions.judges.verdict import Agreement


def vcapsbench_ar(verdicts: Iterable[Agreement | None]) -> float:
    """Return accuracy (AR): how many questions a caption answers as the gold answer does.

    >>> vcapsbench_ar(["positive", "negative", "unanswerable", "positive", None])
    50.0
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    return 100.0 * scored.count("positive") / len(scored) if scored else nan


def vcapsbench_ir(verdicts: Iterable[Agreement | None]) -> float:
    """Return the inconsistency rate (IR), lower is better: how many answers of a caption are wrong.

    >>> vcapsbench_ir(["positive", "negative", "unanswerable", "positive", "positive", None])
    25.0
    """
    answered = [verdict for verdict in verdicts if verdict in ("positive", "negative")]
    return 100.0 * answered.count("negative") / len(answered) if answered else nan


def vcapsbench_cr(verdicts: Iterable[Agreement | None]) -> float:
    """Return the coverage rate (CR): how many questions a caption answers, rightly or wrongly.

    >>> vcapsbench_cr(["positive", "negative", "unanswerable", "unanswerable", None])
    50.0
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    n_answered = len(scored) - scored.count("unanswerable")
    return 100.0 * n_answered / len(scored) if scored else nan
