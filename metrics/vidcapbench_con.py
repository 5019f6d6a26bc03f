"""VidCapBench conciseness."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, nan

from lmms_eval_captions.judges.verdict import Correctness
from lmms_eval_captions.metrics.vidcapbench_acc import vidcapbench_acc


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
