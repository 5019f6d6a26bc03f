"""Reading G-VEval's scores: the last number between a dimension's markers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from lmms_eval_captions.judges.request import Reply
from lmms_eval_captions.judges.text import strip_reasoning

ACCR: Final = ("accuracy", "completeness", "conciseness", "relevance")
"""The four dimensions, in the order in which the paper asks for them."""
OVERALL: Final = ("overall",)

_MARKERS: Final = {
    "accuracy": r"(?:[αɑΑ𝛂𝛼𝜶]|\\?alpha)",
    "completeness": r"(?:[βßϐΒ𝛃𝛽𝜷]|\\?beta)",
    "conciseness": r"(?:[ψΨ𝛙𝜓𝝍]|\\?psi)",
    "relevance": r"(?:[δΔ∂𝛅𝛿𝜹]|\\?delta)",
    "overall": r"\\?\$",
}
_NAMES: Final = {name: name for name in ACCR} | {"overall": "(?:final|overall)"}
# Emphasis, brackets and LaTeX; no minus sign and no point, which belong to numbers. Bounded, so
# that a reply of nothing else is read in linear time.
_FILLER: Final = (
    r"""(?:[\s*_`{}()\[\]$:="'“”]|\\(?:boxed|text|mathbf|left|right|[()\[\],;!])?){0,40}"""
)
_NUMBER: Final = (
    r"(?P<number>[0-9]{1,6}(?:\.[0-9]{1,6})?)"
    r"(?:\s*(?:/|out\s+of)\s*(?P<of>[0-9]{1,6})|\s*(?P<percent>%))?"
)
_LABEL_BEFORE: Final = re.compile(
    r"(accuracy|completeness|conciseness|relevance)[\s*_]+score\s+is\W*\Z", re.IGNORECASE
)
_LABEL_REACH: Final = 60


@dataclass(frozen=True, slots=True)
class Written:
    """A number as a judge wrote it."""

    text: str
    """Digits, with a decimal point where it has one."""
    start: int | None
    """Position in the reply's text, ``None`` where that is not known."""


def read_scores(
    reply: Reply, dimensions: Sequence[str], *, lowest: int, highest: int
) -> dict[str, Written] | None:
    """Every dimension's number, ``None`` where one of them cannot be read.

    The last pair of markers with a number between them wins; where a dimension has none, the last
    sentence that says what its score is. A range, another scale ("8/10"), a number off the
    scale, and a marker that contradicts its sentence are unreadable.

    >>> reply = Reply("It misses 2 dogs. The final score is $85$.")
    >>> read_scores(reply, OVERALL, lowest=0, highest=100)
    {'overall': Written(text='85', start=38)}
    >>> read_scores(Reply("The final score is $185$."), OVERALL, lowest=0, highest=100) is None
    True
    """
    text = strip_reasoning(reply.text)
    offset = reply.text.rfind(text)
    found: dict[str, Written] = {}
    for dimension in dimensions:
        match = _last(text, dimension, cut=reply.finish_reason == "length")
        if match is None or not _on_scale(match, lowest=lowest, highest=highest):
            return None
        start = match.start("number") + offset if offset >= 0 else None
        found[dimension] = Written(match["number"], start)
    return found


def _last(text: str, dimension: str, *, cut: bool) -> re.Match[str] | None:
    marked = list(_marked(dimension).finditer(text))
    if marked:
        before = text[max(0, marked[-1].start() - _LABEL_REACH) : marked[-1].start()]
        label = _LABEL_BEFORE.search(before)
        return None if label and label[1].lower() != dimension else marked[-1]
    said = list(_said(dimension).finditer(text))
    # A reply that was cut may have lost digits.
    return None if not said or (cut and not text[said[-1].end() :].strip()) else said[-1]


def _on_scale(match: re.Match[str], *, lowest: int, highest: int) -> bool:
    if match["of"] and int(match["of"]) != highest:
        return False
    if match["percent"] and highest != 100:
        return False
    return lowest <= float(match["number"]) <= highest


@cache
def _marked(dimension: str) -> re.Pattern[str]:
    """``α 85 α``, with anything between that is not a word or another number."""
    marker = _MARKERS[dimension]
    return re.compile(f"{marker}{_FILLER}{_NUMBER}{_FILLER}{marker}", re.IGNORECASE)


@cache
def _said(dimension: str) -> re.Pattern[str]:
    """``The Accuracy score is 85.``, or a line ``Accuracy: 85``, with a marker or without."""
    name, marker = _NAMES[dimension], f"(?:{_MARKERS[dimension]})?"
    sentence = rf"\b{name}[\s*_]+score[\s*_]*(?:is\b|:)?"
    line = rf"^[\s*_#\-•]*{name}[\s*_]*:(?=[^a-z\n]*$)"
    # No further digit, no second number and no unit.
    end = r"(?![^\W_]|\.[0-9]|[ \t]*[-–—~/%]|[ \t]+(?:to|or|and|of|out)\b)"
    return re.compile(
        f"(?:{sentence}|{line}){_FILLER}{marker}{_FILLER}{_NUMBER}{end}",
        re.IGNORECASE | re.MULTILINE,
    )
