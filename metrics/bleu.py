"""Corpus BLEU from the counts of its captions."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, nan, prod
from typing import Final

ORDERS: Final = 4
"""Longest n-grams that are counted."""


def bleu(counts: Sequence[float], *, n: int) -> float:
    """BLEU of all captions together: matched n-grams are counted over all of them.

    Args:
        counts: Shape (2 + 2 * ``ORDERS``,), sums over captions: words of the candidates and of
            their references, then the n-grams of the candidates for n = 1, 2, ..., then those of
            them that a reference has, too.
        n: Longest n-grams that enter, in [1, ``ORDERS``].

    Returns:
        Score in [0, 1], higher is better: the geometric mean over 1 to n of the shares of n-grams
        that match, times the penalty for candidates shorter than their references. ``nan`` where
        there is no word in any reference; 0 where there is none in any candidate.

    Raises:
        ValueError: If there are more or fewer counts.

    Source:
        Papineni et al. (2002), as pycocoevalcap computes it for a corpus.

    >>> bleu([3, 4, 3, 2, 1, 0, 3, 2, 1, 0], n=1)
    0.7165313105737893
    """
    if len(counts) != 2 + 2 * ORDERS:
        raise ValueError(f"bleu: expected {2 + 2 * ORDERS} counts, got {len(counts)}")
    n_words, n_reference_words = counts[:2]
    n_grams, n_matched = counts[2 : 2 + ORDERS][:n], counts[2 + ORDERS :][:n]
    if not n_reference_words:
        return nan
    if not all(n_grams) or not all(n_matched):
        return 0.0
    shares = (matched / all_ for matched, all_ in zip(n_matched, n_grams, strict=True))
    penalty = exp(min(0.0, 1.0 - n_reference_words / n_words))
    return float(penalty * prod(shares) ** (1.0 / n))
