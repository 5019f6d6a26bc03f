"""AutoDQ's recall, precision and F1 of events (Tarsier, section 4, arXiv 2407.00634).

Clips are averaged within their source, and sources with equal weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import fsum, isnan, nan

OTHER = "other"
"""Value of an event of the other side, which does not count."""


def clip_share(verdicts: Sequence[str | None]) -> float | None:
    """Return the share of entailed events of one side of a clip.

    Args:
        verdicts: ``entailment``, ``neutral`` or ``contradiction`` per event of the side,
            :data:`OTHER` per event of the other side, ``None`` for an unscored one.

    Returns:
        Share in [0, 1]; 1 if the side has no events; ``None`` if nothing was scored.

    >>> clip_share(["entailment", "neutral", "other"]), clip_share(["other"])
    (0.5, 1.0)
    >>> clip_share([None, "other"]) is None, clip_share([]) is None
    (True, True)
    """
    scored = [verdict for verdict in verdicts if verdict not in (None, OTHER)]
    if scored:
        return scored.count("entailment") / len(scored)
    return 1.0 if verdicts and None not in verdicts else None


def weighted_shares(
    shares: Sequence[float | None], sources: Sequence[str]
) -> list[tuple[float, float]]:
    """Return numerator and denominator of each clip in the mean over sources of means over clips.

    Args:
        shares: Shape (n_clips,), in [0, 1]; ``None`` is unscored.
        sources: Shape (n_clips,).

    >>> weighted_shares([1.0, 0.0, None, 0.5], ["a", "a", "a", "b"])
    [(0.5, 0.5), (0.0, 0.5), (0.0, 0.0), (0.5, 1.0)]
    """
    n_scored = Counter(
        source for share, source in zip(shares, sources, strict=True) if share is not None
    )
    return [
        (0.0, 0.0) if share is None else (share / n_scored[source], 1 / n_scored[source])
        for share, source in zip(shares, sources, strict=True)
    ]


def mean_over_sources(shares: Sequence[float | None], sources: Sequence[str]) -> float:
    """Return the mean over sources of means over clips, in percent; ``nan`` without a clip.

    >>> round(mean_over_sources([1.0, 0.0, 0.0, 0.5], ["a", "a", "a", "b"]), 2)
    41.67
    """
    parts = weighted_shares(shares, sources)
    total = fsum(weight for _, weight in parts)
    return 100 * fsum(top for top, _ in parts) / total if total else nan


def f1_of(precision: float, recall: float) -> float:
    """Return the harmonic mean; ``nan`` if one is, 0 if both are 0.

    >>> f1_of(50.0, 100.0)
    66.66666666666667
    """
    if isnan(precision) or isnan(recall):
        return nan
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
