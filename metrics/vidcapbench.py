"""VidCapBench (section 3.2): accuracy, precision, coverage and conciseness.

Each takes a verdict per question-answer pair, over all videos; higher is better. ``None`` is
unscored and leaves the denominator; ``nan`` if the denominator is 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, nan

from lmms_eval_captions.judges.verdict import Correctness


def vidcapbench_acc(verdicts: Iterable[Correctness | None]) -> float:
    """Return the percentage of pairs that captions answer fully and rightly: n_c / n.

    >>> vidcapbench_acc(["correct", "partial", "neutral", "wrong", None])
    25.0
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    return 100.0 * scored.count("correct") / len(scored) if scored else nan


def vidcapbench_pre(verdicts: Iterable[Correctness | None]) -> float:
    """Return the percentage of mentioned pairs that are partly right: (n_p + n_c) / (n - n_n).

    >>> vidcapbench_pre(["correct", "partial", "neutral", "wrong", "wrong", None])
    50.0
    """
    mentioned = [verdict for verdict in verdicts if verdict is not None and verdict != "neutral"]
    n_right = mentioned.count("correct") + mentioned.count("partial")
    return 100.0 * n_right / len(mentioned) if mentioned else nan


def vidcapbench_cov(verdicts: Iterable[Correctness | None]) -> float:
    """Return the percentage of pairs that captions mention, rightly or wrongly: (n - n_n) / n.

    >>> vidcapbench_cov(["correct", "partial", "neutral", "wrong", None])
    75.0
    """
    scored = [verdict for verdict in verdicts if verdict is not None]
    n_mentioned = len(scored) - scored.count("neutral")
    return 100.0 * n_mentioned / len(scored) if scored else nan


def vidcapbench_con(verdicts: Iterable[Correctness | None], n_tokens: Iterable[float]) -> float:
    """Return conciseness: 100 times accuracy in percent per token of the captions, <= 10,000.

    ``n_tokens`` holds each caption's T5 tokens, 1 for an empty one: the end of sequence counts.

    Raises:
        ValueError: If a caption has less than one token.

    Source:
        Acc / tau; Table 3: "we have multiplied Con by 100".
        VidCapBench/VidCapBench@4857cd8:eval.py. Parity: tau is that of all captions in full, also
        for the accuracy of a dimension.

    >>> vidcapbench_con(["correct", "neutral"], [150, 250])
    25.0
    """
    counts = list(n_tokens)
    if any(count < 1 for count in counts):
        raise ValueError(f"vidcapbench_con: expected at least 1 token, got {min(counts)}")
    if not counts:
        return nan
    return 100.0 * vidcapbench_acc(verdicts) / (fsum(counts) / len(counts))
