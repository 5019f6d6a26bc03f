"""ROUGE-L of an answer."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pycocoevalcap.rouge.rouge import Rouge


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
