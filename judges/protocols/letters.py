"""Which letter of a multiple-choice question a judge's reply chooses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.text import strip_reasoning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_eval_captions.judges.request import Reply

LETTERS: Final = "ABCDEF"
"""The letters of the six options."""

# Bounded, as several of these stand side by side: no reply may take long to read.
_OPEN: Final = r"[\s*_`'\"#>\[({<\\$]{0,8}"
_CLOSE: Final = r"[\s*_`'\"\])}>\\$.]{0,8}"
_PREFIX: Final = (
    r"(?:(?:so|thus|therefore|hence)\b[\s,]*)?"
    r"(?:(?:the|my|best|correct|right|final)\s+)*"
    rf"(?:(?:answer|option|choice){_OPEN}(?:is|would\s+be|:|=)?{_OPEN}:?{_OPEN})?(?:option\s+)?"
)
_ALONE: Final = re.compile(rf"{_OPEN}{_PREFIX}{_OPEN}([a-z]){_CLOSE}:?", re.IGNORECASE)
_LEADING: Final = re.compile(
    rf"{_OPEN}{_PREFIX}{_OPEN}([a-z])[\s*_`]*(?:[.:](?!\w)|[)\]\u2013\u2014]|\s-)[\s*_`]*(\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_STATED: Final = re.compile(
    rf"\b(?:answer|choice){_OPEN}(?:is|would\s+be|must\s+be|:|=){_OPEN}:?{_OPEN}(?:option\s+)?{_OPEN}"
    r"([a-z])(?![\w+#'\u2019-]|\.\w)(?=(.*))",
    re.IGNORECASE,
)
_GOES_ON: Final = re.compile(
    r"[\s*_`'\"\])}]*(?:$|[.,;:\n\u2013\u2014]|\s-|\s*\(|(?:because|since|as|based|given|due|which)\b)",
    re.IGNORECASE,
)
_ANOTHER: Final = re.compile(
    r"[\s*_`\])}.]*(?:(?:and|or|/|&)[\s*_`\[({]*[A-F]\b|,[\s*_`\[({]*(?-i:[A-F])\b"
    r"|(?:[A-F]\b[\s\])}.,]*)+$)",
    re.IGNORECASE,
)
_BOXED: Final = re.compile(r"\\(?:boxed|text|textbf|mathbf)\{([^{}]*)\}")


def read_choice(reply: Reply, options: Sequence[str]) -> str | None:
    """The letter that a reply chooses, ``None`` where it chooses none on the menu, or several.

    A letter alone, a letter before its option's text, or a letter that is stated as the answer; the
    last statement wins. The text of an option counts where it is all of the reply.

    Args:
        reply: What the judge said.
        options: Texts of the six options, in the order of their letters.

    >>> from lmms_eval_captions.judges.request import Reply
    >>> menu = ["A cat", "A dog", "A cow", "A hen", "A pig", "None"]
    >>> read_choice(Reply("The answer is B because A and C are wrong."), menu)
    'B'
    >>> read_choice(Reply("A dog runs."), menu) is None
    True
    """
    text = _BOXED.sub(r"\1", strip_reasoning(reply.text))
    found = _by_letter(text, options) or _by_text(text, options)
    cut = reply.finish_reason == "length" and found is not None and found.end >= len(text)
    return None if found is None or cut else found.letter


@dataclass(frozen=True, slots=True)
class _Found:
    letter: str
    end: int
    """Where in the reply the letter ends."""


def _by_letter(text: str, options: Sequence[str]) -> _Found | None:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return None
    alone = _ALONE.fullmatch(lines[-1])
    if alone is not None:
        return _on_menu(alone[1], len(text))
    stated = [match for match in _STATED.finditer(text) if not _is_article(match)]
    if stated:
        return _unless_contradicted(stated[-1], options)
    first = _ALONE.fullmatch(lines[0])
    if first is not None:
        return _on_menu(first[1], 1)
    leading = _LEADING.match(text)
    return None if leading is None else _unless_contradicted(leading, options)


def _by_text(text: str, options: Sequence[str]) -> _Found | None:
    """The option whose text is all of the reply."""
    plain = _plain(text)
    same = [i for i, option in enumerate(options) if plain and _plain(option) == plain]
    return _Found(LETTERS[same[0]], 0) if len(same) == 1 else None


def _on_menu(letter: str, end: int) -> _Found | None:
    return _Found(letter.upper(), end) if letter.upper() in LETTERS else None


def _is_article(stated: re.Match[str]) -> bool:
    """Whether an "a" stated as the answer is an article ("is a dog") and no letter."""
    return stated[1] in "aA" and _GOES_ON.match(stated[2]) is None


def _unless_contradicted(chosen: re.Match[str], options: Sequence[str]) -> _Found | None:
    """The letter, unless what follows it is another letter, or the text of another option alone."""
    letter, rest = chosen[1].upper(), chosen[2]
    plain = _plain(rest)
    same = [LETTERS[i] for i, option in enumerate(options) if plain and _plain(option) == plain]
    if letter not in same and (same or _ANOTHER.match(rest)):
        return None
    return _on_menu(letter, chosen.end(1))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
