"""VidCapBench precision."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

from lmms_eval_captions.judges.verdict import Correctness


def vidcapbench_pre(verdicts: Iterable[Correctness | None]) -> float:
    """Share of what captions mention that is at least partly right.

    Args:
        verdicts: One per question-answer pair, over all videos; ``None`` is unscored.

    Returns:
        Percentage in [0, 100], higher is better. Unscored pairs and those that captions leave out
        are not in the denominator; ``nan`` when nothing is in it.

    Source:
        VidCapBench, section 3.2: (n_p + n_c) / (n_p + n_c + n_w).

    >>> vidcapbench_pre(["correct", "partial", "neutral", "wrong", "wrong", None])
    50.0
    """
    mentioned = [verdict for verdict in verdicts if verdict is not None and verdict != "neutral"]
    n_right = mentioned.count("correct") + mentioned.count("partial")
    return 100.0 * n_right / len(mentioned) if mentioned else nan
