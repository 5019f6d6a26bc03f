"""VidCapBench accuracy."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan

from lmms_eval_captions.judges.verdict import Correctness


def vidcapbench_acc(verdicts: Iterable[Correctness | None]) -> float:
    """Share of question-answer pairs that captions answer fully and rightly.

    Args:
        verdicts: One per pair, over all videos; ``None`` is unscored.

    Returns:
        Percentage in [0, 100], higher is better. Unscored pairs leave the denominator; ``nan``
        when nothing was scored.

    Source:
        VidCapBench, section 3.2: n_c / (n_p + n_c + n_w + n_n).

    >>> vidcapbench_acc(["correct", "partial", "neutral", "wrong", None])
    25.0
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    return 100.0 * scored.count("correct") / len(scored) if scored else nan
