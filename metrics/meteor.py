"""Corpus METEOR from the statistics of its captions."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Final

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
