"""Reading lists of questions and answers that a model wrote: tolerant of form, strict of keys.

A reply whose form is odd still holds what was paid for, so that a fence, prose around, single
quotes or an end that was cut cost nothing that was written whole. A reply of which nothing can be
used costs itself alone, and :func:`fault_of` says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.objects import (
    outermost,
    said,
    tuples_in,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.values import Object

Fault = Literal["empty", "no JSON", "wrong keys", "too many", "repeats itself", "unreadable"]
"""Why nothing is read from a reply: it says nothing; holds no bracket; no object has all the keys;
there are more items than asked for can explain; half of them say the same again; or what looks
like an object is none, as where it was cut."""

_PAIR: Final = ("question", "answer")
_LEFT_OUT: Final = " \t\r\n.\u2026"
"""A text of nothing else stands for one that is left out, as in the form that a prompt shows."""
_LEAST_TO_REPEAT: Final = 6
"""Items from which on repetition tells a model in a loop."""


@dataclass(frozen=True, slots=True)
class Written:
    """The items that were read from a reply."""

    items: tuple[Mapping[str, object], ...]
    """In order, those that repeat an earlier one too; of the asked keys alone."""
    n_wrong_keys: int
    """Objects without all the keys, or with a value there that is no text, or the key's name."""
    n_repeated: int
    """Items that say in every key what an earlier one says."""
    is_cut: bool
    """Whether the reply ended before its list did."""


def read_items(reply: Reply, keys: Sequence[str], *, most: int) -> Written | None:
    """The items of a reply, ``None`` where it cannot be read (:func:`fault_of` says why).

    Args:
        reply: What the model wrote.
        keys: What each item must have, in lower case; read in any case. A value is a text (a number
            is its text, ``true`` and ``false`` are "yes" and "no"), and for "options" a list of
            texts.
        most: Items above which the reply is no answer to what was asked.

    >>> read_items(Reply("[{'a': 1}, {'a': 'x', 'b': 2}]", "stop"), ["a"], most=9).items
    ({'a': '1'}, {'a': 'x'})
    """
    outcome = _read(reply.text, keys, most=most, is_cut=reply.finish_reason == "length")
    return outcome if isinstance(outcome, Written) else None


def read_pairs(reply: Reply, *, most: int) -> Written | None:
    """Questions with their answers, also as a Python list of tuples.

    >>> read_pairs(Reply("[('Who?', 'A man')]", "stop"), most=20).items
    ({'question': 'Who?', 'answer': 'A man'},)
    """
    return read_items(reply, _PAIR, most=most)


def fault_of(text: str, keys: Sequence[str], *, most: int) -> Fault:
    """Why :func:`read_items` reads nothing from a reply of this text.

    >>> fault_of("I cannot see a video.", ["question"], most=20)
    'no JSON'
    """
    outcome = _read(text, keys, most=most, is_cut=False)
    return "unreadable" if isinstance(outcome, Written) else outcome


def _read(text: str, keys: Sequence[str], *, most: int, is_cut: bool) -> Written | Fault:
    text = said(text)
    if not text:
        return "empty"
    found = outermost(text, "{")
    candidates = list(_candidates(found.values, keys))
    is_cut = is_cut or found.is_cut
    if not candidates and tuple(keys) == _PAIR:
        candidates = [dict(zip(_PAIR, row, strict=True)) for row in tuples_in(text)]
    if not candidates:
        return "unreadable" if "{" in text else "no JSON"
    items = [item for item in candidates if item is not None]
    if not items:
        return "wrong keys"
    if _is_loop(items):
        return "repeats itself"
    if len(items) > most:
        return "too many"
    n_repeated = len(items) - len({_said_by(item, item) for item in items})
    return Written(tuple(items), len(candidates) - len(items), n_repeated, is_cut)


def _candidates(
    values: Iterable[object], keys: Sequence[str]
) -> Iterator[Mapping[str, object] | None]:
    """What the objects hold, ``None`` for one without all the keys.

    An object without any of the keys that holds others is only around them.
    """
    for value in values:
        if not isinstance(value, Object):
            continue
        pairs = [(_key(key), inner) for key, inner in value]
        within = [] if any(key in keys for key, _ in pairs) else _objects_within(value)
        if within:
            yield from _candidates(within, keys)
        else:
            yield from (_item(part, keys) for part in _parts(pairs, keys))


def _objects_within(value: Object) -> list[Object]:
    """The objects that are values of an object, or in its lists."""
    inner = [item for _, item in value]
    lists = [item for item in inner if isinstance(item, list) and not isinstance(item, Object)]
    return [item for items in (inner, *lists) for item in items if isinstance(item, Object)]


def _parts(
    pairs: Sequence[tuple[str, object]], keys: Sequence[str]
) -> Iterator[Mapping[str, object]]:
    """An object's pairs, anew from where one of the keys repeats."""
    part: dict[str, object] = {}
    for key, value in pairs:
        if key in part and key in keys:
            yield part
            part = {}
        part[key] = value
    yield part


def _item(part: Mapping[str, object], keys: Sequence[str]) -> Mapping[str, object] | None:
    item: dict[str, object] = {}
    for key in keys:
        value = _options(part.get(key)) if key == "options" else _text(part.get(key))
        # The form itself, in code that would make the list, has each key's name for its value.
        if not value or (isinstance(value, str) and _key(value) == key):
            return None
        item[key] = value
    return item


def _options(value: object) -> list[str] | None:
    """Options as a list of texts; also those of an object, whose keys are their letters."""
    if isinstance(value, Object):
        value = [inner for _, inner in value]
    if not isinstance(value, list | tuple):
        return None
    texts = [_text(inner) for inner in value]
    options = [text for text in texts if text is not None]
    return options if len(options) == len(texts) else None


def _text(value: object) -> str | None:
    match value:
        case bool():
            return "yes" if value else "no"
        case str():
            return value.strip() if value.strip(_LEFT_OUT) else ""
        case int() | float():
            return str(value)
        case _:
            return None


def _key(key: str) -> str:
    return "_".join(key.casefold().replace("-", " ").split())


def _is_loop(items: Sequence[Mapping[str, object]]) -> bool:
    """Whether half of many items ask what an earlier one asks."""
    said_keys = ("question",) if "question" in items[0] else tuple(items[0])
    n_different = len({_said_by(item, said_keys) for item in items})
    return len(items) >= _LEAST_TO_REPEAT and 2 * (len(items) - n_different) >= len(items)


def _said_by(item: Mapping[str, object], keys: Iterable[str]) -> str:
    return repr([" ".join(str(item[key]).casefold().split()) for key in keys])
