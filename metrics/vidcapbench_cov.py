"""VidCapBench coverage."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

from lmms_eval_captions.judges.verdict import Correctness


def vidcapbench_cov(verdicts: Iterable[Correctness | None]) -> float:
    """Share of question-answer pairs whose content captions mention, rightly or not.

    Args:
        verdicts: One per pair, over all videos; ``None`` is unscored.

    Returns:
        Percentage in [0, 100], higher is better. Unscored pairs leave the denominator; ``nan``
        when nothing was scored.

    Source:
        VidCapBench, section 3.2: (n_p + n_c + n_w) / (n_p + n_c + n_w + n_n).

    >>> vidcapbench_cov(["correct", "partial", "neutral", "wrong", None])
    75.0
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    n_mentioned = len(scored) - scored.count("neutral")
    return 100.0 * n_mentioned / len(scored) if scored else nan
