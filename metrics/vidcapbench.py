"""VidCapBench (section 3.2): accuracy, precision, coverage and conciseness."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, nan

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


def vidcapbench_con(verdicts: Iterable[Correctness | None], n_tokens: Iterable[float]) -> float:
    """What each token of the captions contributes to their accuracy, as the paper prints it.

    Args:
        verdicts: One per question-answer pair, over all videos; ``None`` is unscored.
        n_tokens: T5 tokens of each caption at hand, those of videos without a question too; the
            end of sequence counts, so >= 1, and 1 for an empty caption.

    Returns:
        100 times accuracy in percent over the captions' mean number of tokens, in [0, 10,000],
        higher is better; ``nan`` when nothing was scored or there is no caption.

    Raises:
        ValueError: If a caption has less than one token.

    Source:
        VidCapBench, section 3.2: Acc / tau; Table 3: "we have multiplied Con by 100".
        VidCapBench/VidCapBench@4857cd8:eval.py. Parity: tau is that of all captions, whatever
        questions accuracy is of; of a dimension, too, it is that of whole captions.

    >>> vidcapbench_con(["correct", "neutral"], [150, 250])
    25.0
    """
    counts = list(n_tokens)
    if any(count < 1 for count in counts):
        raise ValueError(f"vidcapbench_con: expected at least 1 token, got {min(counts)}")
    if not counts:
        return nan
    return 100.0 * vidcapbench_acc(verdicts) / (fsum(counts) / len(counts))
