"""Objects, lists and tuples that a model wrote as JSON, as Python, or nearly so.

Unlike :mod:`lmms_eval_captions.judges.protocols.reading`, which collects every statement of a
verdict, this reads whole values: what is not complete, or not of the form, is left out. Keys that
repeat are kept, as the reply that AuroraCap's appendix L prints is one object of many pairs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.judges.endpoint.replies import strip_reasoning
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.values import (
    Broken,
    Object,
    ValueReader,
)

_MOST_CHARACTERS: Final = 400_000
"""What is behind them is not looked at."""
_MOST_VALUES: Final = 5_000
_MOST_BROKEN: Final = 2_000
_EFFORT: Final = 2
"""How often the text's length may be read: what is broken is read again from its inside on."""


@dataclass(frozen=True, slots=True)
class Found:
    """The outermost values of a text that begin with one of some brackets."""

    values: tuple[object, ...]
    is_cut: bool
    """Whether the text ends within a value."""


def said(text: str) -> str:
    r"""A reply's text as far as it is looked at, without reasoning and without half characters.

    >>> said("<think>Four?</think>\n[1] \ud83d") == "[1] \ufffd"
    True
    """
    return whole(strip_reasoning(text)[:_MOST_CHARACTERS])


def outermost(text: str, brackets: str) -> Found:
    """The outermost values of a text that begin with one of the brackets.

    Where one is broken, the values within it are the outermost ones. Linear in the text's length.

    Args:
        text: As :func:`said` gives it.
        brackets: Some of ``{``, ``[`` and ``(``.

    >>> outermost("See: [1, [2]], and [3, [4], [5", "[")
    Found(values=([1, [2]], [4]), is_cut=True)
    """
    begins = re.compile(f"[{re.escape(brackets)}]")
    values: list[object] = []
    is_cut, n_broken, left = False, 0, _EFFORT * len(text)
    begin = begins.search(text)
    while begin and left > 0 and n_broken < _MOST_BROKEN and len(values) < _MOST_VALUES:
        reader = ValueReader(text, begin.start())
        try:
            values.append(reader.read())
            end = reader.position
        except Broken:
            n_broken += 1
            is_cut = is_cut or reader.position >= len(text)
            end = begin.start() + 1
            if reader.is_repeating:
                values.append(reader.complete)
                end = reader.position
        left -= reader.position - begin.start()
        begin = begins.search(text, end)
    return Found(tuple(values), is_cut)


def objects_in(text: str) -> list[Object]:
    """The outermost objects of a text, each with its pairs in order, repeated keys too.

    Fenced or bare, in a list or one after the other. One that is broken, or does not end, is left
    out; but of one that repeats its keys the pairs before the break count.

    >>> objects_in("Here: [{'question': 'Who?', 'answer': 'A man'}, {'question': 'Wh")
    [[('question', 'Who?'), ('answer', 'A man')]]
    """
    return [value for value in outermost(text, "{").values if isinstance(value, Object)]


def tuples_in(text: str) -> list[tuple[str, str]]:
    r"""The pairs of texts in a text's Python lists of tuples.

    >>> tuples_in("[('Who?', 'A man'), ('What?', 'It\'s a car'), ('Wh")
    [('Who?', 'A man'), ('What?', "It's a car")]
    """
    rows = [row for value in outermost(text, "[(").values for row in _rows(value)]
    return rows[:_MOST_VALUES]


def _rows(value: object) -> list[tuple[str, str]]:
    """The pair of texts that a tuple is, or those within a list."""
    if isinstance(value, tuple) and len(value) == 2:
        first, second = value
        return [(first, second)] if isinstance(first, str) and isinstance(second, str) else []
    if isinstance(value, list | tuple) and not isinstance(value, Object):
        return [row for inner in value for row in _rows(inner)]
    return []
