"""BLEU, ROUGE-L and METEOR of captions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import exp, nan, prod
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pycocoevalcap.rouge.rouge import Rouge

ORDERS: Final = 4
"""Longest n-grams that are counted."""


def bleu(counts: Sequence[float], *, n: int) -> float:
    """Return BLEU-n over all captions, in [0, 1]; ``nan`` without a word in any reference.

    ``counts`` has shape (2 + 2 * ``ORDERS``,), sums over captions: words of the candidates and of
    their references, then the n-grams of the candidates for n = 1, 2, ..., then the number of those
    that a reference has, too.

    Source:
        Papineni et al. (2002), as pycocoevalcap computes it for a corpus.

    >>> bleu([3, 4, 3, 2, 1, 0, 3, 2, 1, 0], n=1)
    0.7165313105737893
    """
    n_words, n_reference_words = counts[:2]
    n_grams, n_matched = counts[2 : 2 + n], counts[2 + ORDERS : 2 + ORDERS + n]
    if not n_reference_words:
        return nan
    if not all(n_grams) or not all(n_matched):
        return 0.0
    shares = (matched / total for matched, total in zip(n_matched, n_grams, strict=True))
    penalty = exp(min(0.0, 1.0 - n_reference_words / n_words))
    return float(penalty * prod(shares) ** (1.0 / n))


def rouge_l(reference: str, candidate: str) -> float:
    """Return the ROUGE-L F-measure (beta 1.2) of an answer and a reference answer, in [0, 1].

    Lower-cased words without the punctuation at their edges; 0 if either side has no word.

    Source:
        AuroraCap (arXiv 2410.03051), Table C3, which names no variant; by pycocoevalcap.

    >>> rouge_l("a red ball", "A red ball.")
    1.0
    """
    reference, candidate = _normal(reference), _normal(candidate)
    if not reference or not candidate:
        return 0.0
    return float(_scorer().calc_score([candidate], [reference]))


def _normal(text: str) -> str:
    words = (word.strip(".,;:!?\"'()[]") for word in text.lower().split())
    return " ".join(word for word in words if word)


@cache
def _scorer() -> Rouge:
    from pycocoevalcap.rouge.rouge import Rouge

    return Rouge()


N_STATISTICS: Final = 23
"""Numbers that METEOR 1.5 writes for one caption."""
_STAGES: Final = (1.0, 0.6, 0.8, 0.6)
"""Weight of words that match exactly, by their stem, as synonyms, as paraphrases."""
_ALPHA: Final = 0.85
_BETA: Final = 0.2
_GAMMA: Final = 0.6
_DELTA: Final = 0.75
"""Weight of content words; function words have the rest."""


def meteor(statistics: Sequence[float]) -> float:
    """Return METEOR of all captions, in [0, 1]; ``nan`` without a word in any reference.

    ``statistics`` has shape (``N_STATISTICS``,), sums of :func:`summed` over captions: words of
    candidate and reference, function words of both; for each of four stages of matching the matched
    content words of both and function words of both; chunks; matched words of both.

    Source:
        Denkowski and Lavie (2014), METEOR 1.5 for English, as pycocoevalcap calls it.

    >>> meteor([2, 2, 0, 0, 2, 2, *[0] * 14, 0, 2, 2])
    1.0
    """
    if not statistics[1]:
        return nan
    # Of the candidate, then of the reference.
    shares = [_matched_share(statistics[side:20:2]) for side in (0, 1)]
    if not all(shares):
        return 0.0
    precision, recall = shares
    n_chunks, n_matched, n_reference_matched = statistics[20:]
    mean = 1.0 / ((1.0 - _ALPHA) / precision + _ALPHA / recall)
    fragments = 2.0 * n_chunks / (n_matched + n_reference_matched)
    return float(mean * (1.0 - _GAMMA * fragments**_BETA))


def _matched_share(counts: Sequence[float]) -> float:
    """Return the matched share of words, function words and each stage's matches of both kinds."""
    n_words, n_function, *matches = counts
    matched = sum(
        weight * (_DELTA * content + (1.0 - _DELTA) * function)
        for weight, content, function in zip(_STAGES, matches[::2], matches[1::2], strict=True)
    )
    return matched and matched / (_DELTA * (n_words - n_function) + (1.0 - _DELTA) * n_function)


def summed(statistics: Sequence[float]) -> tuple[float, ...]:
    """Return what one caption adds to the sums: a caption that matches completely adds no chunk.

    Source:
        ``MeteorStats.addStats`` of METEOR 1.5.

    >>> summed([2, 2, 0, 0, 2, 2, *[0] * 14, 1, 2, 2])[-3:]
    (0.0, 2, 2)
    """
    n_words, n_reference_words = statistics[:2]
    n_chunks, n_matched, n_reference_matched = statistics[-3:]
    is_complete = (n_matched, n_reference_matched) == (n_words, n_reference_words)
    n_added = 0.0 if is_complete and n_chunks == 1 else n_chunks
    return (*statistics[:-3], n_added, n_matched, n_reference_matched)
