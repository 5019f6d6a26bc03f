"""The offline stand-in judge: word overlap, deterministic, no key and no network.

It shows that a pipeline runs; what it scores says nothing about a caption.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")
_STOP = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "does",
        "do",
        "for",
        "from",
        "has",
        "have",
        "how",
        "in",
        "into",
        "is",
        "it",
        "its",
        "of",
        "on",
        "or",
        "s",
        "she",
        "he",
        "that",
        "the",
        "their",
        "them",
        "they",
        "this",
        "to",
        "video",
        "was",
        "what",
        "when",
        "where",
        "which",
        "who",
        "why",
        "will",
        "with",
    ]
)
_NUMBERS = {
    w: str(n)
    for n, w in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight"])
}


def content_words(text: str) -> set[str]:
    """Lower-case words that carry content, plural endings dropped, small numbers as digits.

    >>> sorted(content_words("What are the two red circles doing?"))
    ['2', 'circle', 'doing', 'red']
    """
    words = (_NUMBERS.get(word, word) for word in _WORD.findall(text.lower()))
    return {
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in words
        if word not in _STOP
    }


def best_sentence(text: str, question: str) -> str:
    """The sentence of a text that shares most words with a question; the first one on a tie.

    >>> best_sentence("A red circle moves. The camera is still.", "What does the camera do?")
    'The camera is still.'
    >>> best_sentence("", "What does the camera do?")
    'Not mentioned.'
    """
    wanted = content_words(question)
    sentences = [s.strip() for s in re.split(r"(?<=[.!?。])\s+", text) if s.strip()]
    return max(sentences, key=lambda s: len(wanted & content_words(s)), default="Not mentioned.")


def recall(reference: str, candidate: str) -> float:
    """Share of a reference's content words that a candidate holds, in [0, 1]; 0 for an empty one.

    >>> recall("a red circle", "the circle is red")
    1.0
    """
    wanted = content_words(reference)
    return len(wanted & content_words(candidate)) / len(wanted) if wanted else 0.0
