"""Reader of replies that are a JSON list or object."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Hashable, Iterator
from typing import Final, TypeVar

from json_repair import repair_json

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols import reading

T = TypeVar("T", bound=Hashable)

_MOST_VALUES: Final = 40
_MOST_REPAIRED: Final = 20_000
"""Characters up to which a damaged value is repaired; repairing is not linear."""


def read_json(reply: Reply, convert: Callable[[object], T | None]) -> T | None:
    """Return the value of a reply, ``None`` if it has none or several that differ.

    Prose and fences around a value, single quotes and trailing commas are accepted. A reply that
    was cut is unreadable.

    Args:
        reply: The judge's reply.
        convert: Return the value of a parsed list or object, ``None`` if it is of another form.

    >>> as_words = lambda value: tuple(value) if isinstance(value, list) else None
    >>> read_json(Reply('Here: ["a", "b"]', "stop"), as_words)
    ('a', 'b')
    >>> read_json(Reply('["a"] or ["b"]', "stop"), as_words) is None
    True
    """
    text = reading.plain(reply)
    if not text or reply.finish_reason == "length":
        return None
    values = [value for parsed in _parsed(text) if (value := convert(parsed)) is not None]
    return reading.the_one(values)


def _parsed(text: str) -> Iterator[object]:
    """Yield every list and object of a text that is not inside another one."""
    decoder, position, n_found = json.JSONDecoder(), 0, 0
    while n_found < _MOST_VALUES:
        starts = [at for sign in "[{" if (at := text.find(sign, position)) >= 0]
        if not starts:
            break
        try:
            value, position = decoder.raw_decode(text, min(starts))
        except (ValueError, RecursionError):
            break
        n_found += 1
        yield value
    if n_found == 0 and len(text) <= _MOST_REPAIRED:
        for opening, closing in ("[]", "{}"):
            start, end = text.find(opening), text.rfind(closing)
            if 0 <= start < end:
                yield _repaired(text[start : end + 1])


def _repaired(text: str) -> object:
    """Return the value of a Python literal, or of damaged JSON."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return repair_json(text, return_objects=True)
