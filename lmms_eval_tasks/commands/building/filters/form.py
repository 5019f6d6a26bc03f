"""What a multiple-choice question must be, whatever the clip shows.

Source: CapQuiz, figure 6 ("Independent Answerability", "Output Requirements").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from lmms_eval_captions.judges.protocols.capquiz import LETTERS, N_OPTIONS, UNKNOWN

_STEMS: Final = re.compile(
    r"\b(?:which|what)\b(?:\s+(?:one|ones|option|options|choice|choices|statement|statements"
    r"|answer|answers|description|descriptions|event|events|action|actions|object|objects))?"
    r"\s+(?:of|among|from)\s+(?:the\s+)?(?:following|these|those|options|choices|below|above)\b"
    r"|\bwhich\s+(?:statement|option|choice|answer|description)\b"
    r"|\b(?:best|most\s+accurately|correctly)\s+(?:describes|describe|summarizes|summarize)\b"
    r"|\bthe\s+following\b",
    re.IGNORECASE,
)
"""Stems that cannot be answered without their options."""
_COUNTERFACTUAL: Final = re.compile(
    r"\b(?:would|could|might)\s+(?:\w+\s+){0,3}?have\s+(?:happened|been|occurred|become|resulted|\w+ed)\b"
    r"|\bwhat\s+(?:would|could|might)\s+(?:\w+\s+){0,4}?\bif\b"
    r"|\bwhat\s+if\b|\bif\b[^?]{0,80}\bhad(?:\s+not|n't)\b|\bif\b[^?]{0,80}\bhad\s+\w+(?:ed|en|ne)\b",
    re.IGNORECASE,
)
"""Stems about what did not happen."""
_LETTERED: Final = re.compile(r"\(?([A-E])[.):]\s+(\S.*)", re.DOTALL)
_OF_OTHERS: Final = re.compile(
    r"\b(?:all|none|both|neither|any)\s+of\s+(?:the\s+)?(?:above|below|these|options|other)\b"
    r"|\b(?:cannot|can't|can\s+not|could\s+not)\s+be\s+(?:determined|told|known)\b",
    re.IGNORECASE,
)
"""Options that are about the others, or that are what is added to every question."""


def same_words(text: str) -> str:
    """A text without what two of the same words may differ in.

    >>> same_words(" A red  Car. ") == same_words("a red car")
    True
    """
    return " ".join(text.split()).casefold().rstrip(".?! ")


def quiz_fault(pair: Mapping[str, Any], categories: Collection[str]) -> str | None:
    """Why a multiple-choice question cannot be asked, ``None`` where it can.

    Args:
        pair: ``category``, ``question``, ``options`` and ``answer``, as a model wrote them.
        categories: Names that a category may have.

    >>> quiz_fault({"category": "Entity", "question": "Which of these is red?",
    ...     "options": ["a", "b", "c", "d", "e"], "answer": "a"}, ["Entity"])
    'form: the question needs its options'
    """
    question, answer = pair["question"], pair["answer"]
    if not _is_text(question):
        return "form: no question"
    if pair["category"] not in categories:
        return "form: a category that was not asked for"
    fault = _options_fault(pair["options"], answer)
    if fault is None and _STEMS.search(question):
        fault = "form: the question needs its options"
    elif fault is None and _COUNTERFACTUAL.search(question):
        fault = "form: about what did not happen"
    return fault


def _options_fault(options: object, answer: object) -> str | None:
    if not isinstance(options, list | tuple) or not all(map(_is_text, options)):
        return "form: options that are no texts"
    if len(options) != N_OPTIONS:
        return f"form: not {N_OPTIONS} options"
    if len({same_words(option) for option in [*options, UNKNOWN]}) <= N_OPTIONS:
        return "form: two options are the same"
    if any(_OF_OTHERS.search(option) for option in options):
        return "form: an option about the others"
    return None if answer in options else "form: the answer is none of the options"


def without_letters(pair: Mapping[str, Any]) -> dict[str, Any]:
    """A question whose options come without the letters that a model put before them.

    An answer that is the letter alone, or has it before its words, is the option's text then; all
    five must have their letters, in order.

    >>> options = ["A. red", "B. blue", "C. pink", "D. grey", "E. gold"]
    >>> made = without_letters({"options": options, "answer": "B"})
    >>> made["options"][:2], made["answer"]
    (['red', 'blue'], 'blue')
    """
    options, answer = pair["options"], pair["answer"]
    texts = options if isinstance(options, list) else []
    lettered = [_LETTERED.fullmatch(text) if isinstance(text, str) else None for text in texts]
    if len(texts) != N_OPTIONS or "".join(m[1] for m in lettered if m) != LETTERS[:N_OPTIONS]:
        return dict(pair)
    plain = [match[2] for match in lettered if match]
    by_letter = dict(zip(LETTERS, plain, strict=False))
    said = dict(zip(texts, plain, strict=True)) | by_letter
    return {**pair, "options": plain, "answer": said.get(answer, answer)}


def category_of(name: object, categories: Collection[str]) -> object:
    """A category as it was asked for, however a model spells it; as it is where it is none.

    >>> category_of("causal_reasoning", ["Entity", "Causal Reasoning"])
    'Causal Reasoning'
    >>> category_of("Causal", ["Entity", "Causal Reasoning"])
    'Causal Reasoning'
    """
    if not isinstance(name, str):
        return name
    spelled = letters_of(name)
    known = {letters_of(category): category for category in categories}
    return known.get(spelled) or known.get(f"{spelled}reasoning") or name


def letters_of(name: str) -> str:
    """What categories are told apart by, whatever their case, spaces and signs.

    >>> letters_of("Intent & Emotion") == letters_of("intent_and_emotion")
    True
    """
    return "".join(letter for letter in name.casefold().replace("&", "and") if letter.isalnum())


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
