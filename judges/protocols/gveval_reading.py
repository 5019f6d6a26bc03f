"""Reading G-VEval's scores: the number that stands between a dimension's markers, or is named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.judges.endpoint.replies import strip_reasoning
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.reading import (
    GREATER,
    MOST_CHARACTERS,
    UNCLEAR,
    Unclear,
    ends_clearly,
    is_doubted,
    may_be_cut,
    same_signs,
    the_one,
)

ACCR: Final = ("accuracy", "completeness", "conciseness", "relevance")
"""The four dimensions, in the order in which the paper asks for them."""

_SIGNS: Final = {
    "accuracy": ("αɑΑ𝛂𝛼𝜶", "alpha"),
    "completeness": ("βßϐΒ𝛃𝛽𝜷", "beta"),
    "conciseness": ("ψΨ𝛙𝜓𝝍", "psi"),
    "relevance": ("δΔ∂𝛅𝛿𝜹", "delta"),
}
_MARKERS: Final = {
    name: rf"(?:[{signs}]|\\?(?<![a-z]){word}(?![a-z]))" for name, (signs, word) in _SIGNS.items()
}
_ALL_SIGNS: Final = "".join(signs for signs, _ in _SIGNS.values())
_NUMBER: Final = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?")
_MOST_DIGITS: Final = 6
_REACH: Final = 72
"""Characters around a number in which its markers and its label must stand."""
# Emphasis, brackets and LaTeX; no minus sign and no point, which belong to numbers.
_DRESS: Final = r"(?:[\s*_`{}()\[\]$=\"'|\\]|(?<=\\)(?:boxed|text|mathbf|left|right))"
_DRESS_BEFORE: Final = re.compile(rf"(?:{_DRESS}|[:,])*\Z")
_DRESS_BEHIND: Final = re.compile(rf"(?:{_DRESS})*")
_SCALE: Final = re.compile(r"\s*(?:(?:/|out\s+of)\s*(?P<of>[0-9]{1,6})|(?P<percent>%))")
_MORE: Final = re.compile(
    r"[ \t*_`\"')\]}$]{0,8}(?:(?:/|out\s+of\b|of\b)\s{0,4}[$\\]{0,2}(?P<of>[0-9]+)"
    r"|(?:[-~,;&|+\u00b1\u2192]|->|to\b|or\b|and\b|then\b|no,)\s{0,4}[$\\]{0,2}[0-9])"
)
"""What a number between markers is still no score of the scale with."""
_TOP_OF_SCALE: Final = re.compile(r"\bout\s+of[\s$\\]*\Z", re.IGNORECASE)
_BEFORE_NUMBER: Final = re.compile(
    r"[0-9.,]\Z|[-~/\u00b1\u2248\u2264\u2265<]\s?\Z"
    rf"|{GREATER}\s?\Z"
    r"|\\(?:leq?|geq?|lt|gt|approx|sim)\b[\s{]{0,3}\Z"
)
_LABEL: Final = re.compile(
    r"(?:(?:\b(?P<named>accuracy|completeness|conciseness|relevance|final|overall)[\s*_]+score"
    r"|(?P<quoted>[\"'](?:accuracy|completeness|conciseness|relevance|overall)(?:_score)?[\"']))"
    r"[\s*_\"']*(?:is\b|:|=|\|)?"
    r"|(?:\n[\s*_#|•-]*(?:[0-9]{1,2}[.)]\s*)?|\b)"
    r"(?P<line>accuracy|completeness|conciseness|relevance|final|overall)[\s*_]*[:|][\s*_]*"
    r"|(?:\n|[.!?]\s)[\s*_#|•-]*(?:(?:the|my)\s+)?(?P<score>score)[\s*_]*(?:is\b|:|=))\W{0,3}\Z",
    re.IGNORECASE,
)
# A look at the first sign spares the alternatives almost everywhere.
_ANCHOR: Final = re.compile(
    rf"(?=[{_ALL_SIGNS}$abcdfoprs])(?:[{_ALL_SIGNS}$]+|(?<![a-z])(?:alpha|beta|psi|delta)(?![a-z])"
    r"|score|accuracy|completeness|conciseness|relevance|overall|final)",
    re.IGNORECASE,
)
_LINE_ENDS: Final = re.compile(
    r"(?:\s*(?:/|out\s+of)\s*[0-9]{1,6}|\s*%)?[ \t*_`'\")\]]{0,8}(?:\Z|[\n.;,(|\u2014]|\s-\s)",
    re.IGNORECASE,
)
_SENTENCE_ENDS: Final = re.compile(r"\n|[.!?]\s")
_NEXT_SENTENCE: Final = re.compile(r"[.!?](?:\s|\Z)")
"""What a label and the number that it names do not stand in together."""
_MOST_NUMBERS: Final = 60
"""Numbers near a marker or a label; a reply with more of them scores nothing."""


@dataclass(frozen=True, slots=True)
class Written:
    """A number as a judge wrote it."""

    text: str
    """Digits, with a decimal point where it has one."""
    start: int | None
    """Position in the reply's text, ``None`` where that is not known."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """A number that is said to be a dimension's score."""

    dimension: str
    value: float | Unclear
    text: str
    start: int


def read_scores(
    reply: Reply, dimensions: Sequence[str], *, lowest: int, highest: int
) -> dict[str, Written] | None:
    """Every dimension's number, ``None`` where one of them cannot be read.

    All numbers that stand between a dimension's markers, or that a sentence or a line names as its
    score, must be the same. A range, another scale ("8/10"), a number off the scale, and a marker
    that contradicts its sentence are unreadable. See
    :mod:`lmms_eval_captions.judges.protocols.reading`.

    >>> reply = Reply("It misses 2 dogs. The Accuracy score is α85α.")
    >>> read_scores(reply, ["accuracy"], lowest=0, highest=100)
    {'accuracy': Written(text='85', start=41)}
    >>> off_scale = Reply("The Accuracy score is α185α.")
    >>> read_scores(off_scale, ["accuracy"], lowest=0, highest=100) is None
    True
    """
    stripped = strip_reasoning(reply.text)
    if len(stripped) > MOST_CHARACTERS:
        return None
    whole = reply.text.rstrip()
    offset = len(whole) - len(stripped) if whole.endswith(stripped) else None
    statements = _statements(
        same_signs(stripped), dimensions, (lowest, highest), cut=may_be_cut(reply)
    )
    scores: dict[str, Written] = {}
    for dimension in dimensions:
        own = [statement for statement in statements if statement.dimension == dimension]
        if the_one([statement.value for statement in own]) is None:
            return None
        # Parity: the released code takes the first.
        start = None if offset is None else own[0].start + offset
        scores[dimension] = Written(own[0].text, start)
    return scores


def _statements(
    text: str, dimensions: Sequence[str], scale: tuple[int, int], *, cut: bool
) -> list[_Statement]:
    statements: list[_Statement] = []
    for number in _candidates(text):
        start, end = number.span()
        line_start = "\n" if start <= _REACH else ""
        before = line_start + text[max(0, start - _REACH) : start]
        behind = text[end : end + _REACH]
        if _TOP_OF_SCALE.search(before):
            continue
        opening, label = _before(before, dimensions)
        closing, length = _behind(behind, dimensions)
        is_marked = opening is not None and opening == closing
        if label is not None and label not in dimensions:
            continue  # it is another score
        if opening is None and label is not None and not _is_said(before, behind):
            continue
        paired = {opening, closing} if opening and closing else set()
        about = {*paired, label, opening if label else None} - {None}
        if not about:
            continue
        is_clear = (
            len(about) == 1
            and (is_marked or opening is None or not _closes_later(opening, behind))
            and _is_clear(text, number, end + length if is_marked else None, scale, cut=cut)
        )
        said: float | Unclear = float(number[0]) if is_clear else UNCLEAR
        statements += [_Statement(str(name), said, number[0], start) for name in about]
    return statements


def _candidates(text: str) -> list[re.Match[str]]:
    """Numbers that a marker or a label stands before; none where there are far too many."""
    anchors = [anchor.end() for anchor in _ANCHOR.finditer(text)]
    candidates: list[re.Match[str]] = []
    index, latest = 0, -_REACH - 1
    for number in _NUMBER.finditer(text):
        while index < len(anchors) and anchors[index] <= number.start():
            latest = anchors[index]
            index += 1
        if number.start() - latest <= _REACH:
            candidates.append(number)
            if len(candidates) > _MOST_NUMBERS:
                return []
        elif index == len(anchors):
            break
    return candidates


def _before(text: str, dimensions: Sequence[str]) -> tuple[str | None, str | None]:
    """The dimension of the marker before a number, and of the label before that."""
    dress = _DRESS_BEFORE.search(text)
    at = dress.start() if dress else len(text)
    for dimension in dimensions:
        marker = re.search(rf"{_MARKERS[dimension]}\Z", text[:at], re.IGNORECASE)
        if marker is not None:
            return dimension, _label(text[: marker.start()])
    return None, _label(text)


def _label(text: str) -> str | None:
    dress = _DRESS_BEFORE.search(text)
    trimmed = text[: dress.start()] if dress else text
    for candidate in (text, trimmed):
        label = _LABEL.search(candidate)
        if label is not None and not _NEXT_SENTENCE.search(
            candidate, label.end(label.lastgroup or 0)
        ):
            name = label["named"] or label["quoted"] or label["line"] or label["score"]
            name = name.strip("\"'").casefold().removesuffix("_score")
            return "overall" if name in ("final", "score") else name
    return None


def _behind(text: str, dimensions: Sequence[str]) -> tuple[str | None, int]:
    """The dimension of the marker behind a number, and how far it reaches."""
    scale = _SCALE.match(text)
    at = scale.end() if scale else 0
    dress = _DRESS_BEHIND.match(text, at)
    end = dress.end() if dress else at
    for dimension in dimensions:
        marker = re.compile(_MARKERS[dimension], re.IGNORECASE).match(text, end)
        if marker is not None:
            return dimension, marker.end()
    return None, 0


def _closes_later(dimension: str, behind: str) -> bool:
    """Whether something but the number stands before the closing marker ("$70 + 5$")."""
    sentence = _SENTENCE_ENDS.split(behind, maxsplit=1)[0]
    return re.search(_MARKERS[dimension], sentence, re.IGNORECASE) is not None


def _is_said(before: str, behind: str) -> bool:
    """Whether a label at the beginning of a line names a score: nothing else is on the line."""
    label = _LABEL.search(before)
    if label is None or label["line"] is None:
        return True
    return _LINE_ENDS.match(behind) is not None


def _is_clear(
    text: str, number: re.Match[str], closed: int | None, scale: tuple[int, int], *, cut: bool
) -> bool:
    """Whether a number is one on the scale, and nothing around it makes it another.

    ``closed`` is the position behind its closing marker, ``None`` where there is none.
    """
    start, end = number.span()
    lowest, highest = scale
    digits = number[0]
    before = text[max(0, start - 12) : start]
    if (
        len(digits) > _MOST_DIGITS
        or digits[0] in "+-"
        or not lowest <= float(digits) <= highest
        or (
            _BEFORE_NUMBER.search(before) and not (before[-1] == "<" and text[end : end + 1] == ">")
        )
        or is_doubted(text, start, end)
    ):
        return False
    unit = _SCALE.match(text, end)
    if unit is not None and not (
        (unit["percent"] and highest == 100) or unit["of"] == str(highest)
    ):
        return False
    if closed is not None:
        more = _MORE.match(text, closed)
        if more is not None:
            return more["of"] == str(highest)
        is_ellipsis = text.startswith("..", closed)  # as in the form that the prompt asks for
        return is_ellipsis or ends_clearly(text, closed, top=highest, cut=False)
    return ends_clearly(text, end if unit is None else unit.end(), top=highest, cut=cut)
