"""BLEU, ROUGE-L and METEOR of a caption."""

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


def rouge_l(reference: str, candidate: str) -> float:
    """ROUGE-L F-measure (beta 1.2) of a candidate answer against one reference answer.

    Words are split at white space after lower-casing; punctuation at a word's edge is dropped.

    Returns:
        Score in [0, 1], higher is better; 0 where either side has no word.

    Source:
        AuroraCap (arXiv 2410.03051), Table C3, which names ROUGE and not its variant; computed by
        pycocoevalcap (Lin, 2004).

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


def meteor(statistics: Sequence[float]) -> float:
    """METEOR of all captions together, from what its program counted in each of them.

    Args:
        statistics: Shape (``N_STATISTICS``,), sums over captions of what METEOR 1.5 writes for one,
            see :func:`summed`: words of candidate and reference, function words of both; for each
            of four stages of matching the matched content words of both and function words of
            both; chunks; matched words of both.

    Returns:
        Score in [0, 1], higher is better; 0 where nothing matches, ``nan`` where there is no word
        in any reference.

    Raises:
        ValueError: If there are more or fewer numbers.

    Source:
        Denkowski and Lavie (2014), METEOR 1.5 with its parameters for English, as pycocoevalcap
        calls it. For a corpus it takes sums over captions, not a mean of their scores.

    >>> meteor([2, 2, 0, 0, 2, 2, *[0] * 14, 0, 2, 2])
    1.0
    """
    if len(statistics) != N_STATISTICS:
        raise ValueError(f"meteor: expected {N_STATISTICS} numbers, got {len(statistics)}")
    n_words, n_reference_words, n_function, n_reference_function = statistics[:4]
    stages = [statistics[place : place + 4] for place in range(4, 20, 4)]
    n_chunks, n_matched, n_reference_matched = statistics[20:]
    if not n_reference_words:
        return nan
    found = _weighted([(stage[0], stage[2]) for stage in stages])
    of_reference = _weighted([(stage[1], stage[3]) for stage in stages])
    if not found or not of_reference:
        return 0.0
    precision = found / _content(n_words, n_function)
    recall = of_reference / _content(n_reference_words, n_reference_function)
    mean = 1.0 / ((1.0 - _ALPHA) / precision + _ALPHA / recall)
    fragments = 2.0 * n_chunks / (n_matched + n_reference_matched)
    return float(mean * (1.0 - _GAMMA * fragments**_BETA))


def summed(statistics: Sequence[float]) -> tuple[float, ...]:
    """What one caption adds to the sums: a caption that matches from end to end adds no chunk.

    Args:
        statistics: Shape (``N_STATISTICS``,), what METEOR 1.5 writes for the caption.

    Source:
        ``MeteorStats.addStats`` of METEOR 1.5: a text in one piece is not broken, however many such
        texts there are.

    >>> summed([2, 2, 0, 0, 2, 2, *[0] * 14, 1, 2, 2])[-3:]
    (0.0, 2, 2)
    """
    n_words, n_reference_words = statistics[:2]
    n_chunks, n_matched, n_reference_matched = statistics[-3:]
    is_whole = n_matched == n_words and n_reference_matched == n_reference_words and n_chunks == 1
    return (*statistics[:-3], 0.0 if is_whole else n_chunks, n_matched, n_reference_matched)


def _weighted(stages: Sequence[tuple[float, float]]) -> float:
    """Matched words, content words and sure matches counting more."""
    return sum(
        weight * (_DELTA * content + (1.0 - _DELTA) * function)
        for weight, (content, function) in zip(_STAGES, stages, strict=True)
    )


def _content(n_words: float, n_function: float) -> float:
    return _DELTA * (n_words - n_function) + (1.0 - _DELTA) * n_function
