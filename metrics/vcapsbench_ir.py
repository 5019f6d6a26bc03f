"""VCapsBench inconsistency rate."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

from lmms_eval_captions.judges.verdict import Agreement


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
