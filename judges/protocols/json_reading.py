"""Reader of replies that are a JSON list or object."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Hashable, Iterator
from typing import Final, NamedTuple, TypeVar

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols import reading

T = TypeVar("T", bound=Hashable)

_MOST_ENDS: Final = 20
"""Closing brackets that are tried as the end of a value that is no JSON."""
_NOTE: Final = re.compile(r"\[[^\[\]{}\"',:]{0,80}\]")
"""Words in brackets: "[reference]"."""
_EXAMPLE: Final = re.compile(
    r"\b(?:such as|for instance|e\.g|format|instead of|not)\b[^.!?\n]*\Z", re.IGNORECASE
)
_OPENING: Final = re.compile(r"[\[{]")


class _Value(NamedTuple):
    """A list or object of a reply, with where it stands."""

    value: object
    start: int
    end: int


class _TwiceError(ValueError):
    """A key occurs twice in an object."""


def read_json(reply: Reply, convert: Callable[[object], T | None]) -> T | None:
    """Return the value of a reply, ``None`` if it has none or several that differ.

    Prose and fences around a value, single quotes and trailing commas are accepted. Nothing is
    repaired: a value that is cut, taken back, an example, or followed by something that looks like
    another one is unreadable.

    Args:
        reply: The judge's reply.
        convert: Return the value of a parsed list or object, ``None`` if it is of another form.

    >>> as_words = lambda value: tuple(value) if isinstance(value, list) else None
    >>> read_json(Reply('Here: ["a", "b"]', "stop"), as_words)
    ('a', 'b')
    >>> read_json(Reply('["a"] or ["b"]', "stop"), as_words) is None
    True
    >>> read_json(Reply('["a"]. Correction: [b', "stop"), as_words) is None
    True
    """
    text = reading.plain(reply)
    if not text or reply.finish_reason == "length":
        return None
    found: list[T | reading.Unclear] = []
    try:
        for value, start, end in _values(text):
            one = convert(value)
            if one is not None:
                is_example = _EXAMPLE.search(text[:start]) is not None
                is_doubted = is_example or reading.is_taken_back(text, start, end)
                found.append(reading.UNCLEAR if is_doubted else one)
            elif found:
                return None
    except ValueError:
        return None
    return reading.the_one(found)


def _values(text: str) -> Iterator[_Value]:
    """Yield the lists and objects of a text that are not inside another one.

    Raises:
        ValueError: At a bracket that begins no value; words in brackets may come before the first.
    """
    position, n_found = 0, 0
    while (match := _OPENING.search(text, position)) is not None:
        note = _NOTE.match(text, match.start())
        try:
            value, position = _value_at(text, match.start())
        except ValueError:
            if n_found or note is None:
                raise
            position = note.end()
            continue
        n_found += 1
        if n_found > reading.MOST_STATEMENTS:
            raise ValueError("too many values")
        yield _Value(value, match.start(), position)


def _value_at(text: str, start: int) -> tuple[object, int]:
    """Return the value that begins at a bracket, as JSON or as a Python literal, and its end."""
    try:
        return _DECODER.raw_decode(text, start)
    except _TwiceError:
        raise
    except (ValueError, RecursionError):
        closing = {"[": "]", "{": "}"}[text[start]]
    end = len(text)
    for _ in range(_MOST_ENDS):
        end = text.rfind(closing, start, end)
        if end < 0:
            break
        try:
            return ast.literal_eval(text[start : end + 1]), end + 1
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    raise ValueError("no list and no object")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) < len(pairs):
        raise _TwiceError("a key occurs twice")
    return dict(pairs)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique)
