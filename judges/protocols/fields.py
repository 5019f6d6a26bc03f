"""The fields of objects that a judge wrote, as JSON, as Python, or nearly so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

_QUOTES: Final = "\"'`"
_PAIRS: Final = {"}": "{", "]": "["}
_QUOTE_OR_ESCAPE: Final = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in _QUOTES}
_STRING_ENDS: Final = re.compile(r"\s*(?:[,}\]:]|\Z|(?:#|//))")
_KEY: Final = re.compile(r"[^:=,{}\[\]\n]+")
_VALUE: Final = re.compile(r"[^,{}\[\]\n]+")
_LATER: Final = ("final", "overall", "revised", "corrected", "updated", "adjusted")
"""What a key begins with that says a verdict anew."""
_COLON: Final = re.compile(r"\s*[:=]")
_COMMENT: Final = re.compile(r"\s(?:#|//).*|\Z", re.DOTALL)
_MOST_TOKENS: Final = 3_000
"""Strings, words and signs of a block; what is behind them in a longer one is not looked at."""


@dataclass(frozen=True, slots=True)
class Field:
    """A key and what was written for it."""

    key: str
    """Without quotes, in lower case."""
    value: str
    """Text of a string, number or word; the bracket where an object or a list begins."""
    depth: int
    """Objects around it, >= 1."""


@dataclass(frozen=True, slots=True)
class Block:
    """An outermost pair of braces in a text, or an opening one without its closing one."""

    fields: tuple[Field, ...]
    """Those that are complete: a comma, a line's end or a closing bracket follows them."""
    start: int
    end: int
    """Position behind it."""
    closed: bool

    def values(self, key: str) -> list[str]:
        """What was written for a key, and beside it for a later one of its kind ("final_score").

        Of a block that does not end its own fields count, and what is inside its objects only
        beside them: alone it may be part of something that is not there yet.
        """
        fields = [
            field
            for field in self.fields
            if field.key.endswith(key)
            and (field.key == key or field.key[: -len(key)].rstrip("_ ") in _LATER)
        ]
        if not self.closed and not any(field.depth == 1 for field in fields):
            return []
        if fields and not any(field.key == key for field in fields):
            return [""]  # the later one alone says nothing that can be relied on
        return [field.value for field in fields]


def blocks(text: str) -> Iterator[Block]:
    r"""The outermost blocks of a text, in time linear in its length.

    Strings may hold braces, escaped quotes, and quotes that should have been escaped: one that no
    comma, colon or bracket follows does not end its string.

    >>> [block] = blocks("So: {'score': 2, 'why': 'it's {\"score\": 0}'}")
    >>> block.values("score"), block.closed
    (['2'], True)
    """
    start = text.find("{")
    while start >= 0:
        reader = _Reader(text, start)
        yield reader.read()
        start = text.find("{", reader.position)


def apart(text: str, most: int) -> tuple[list[Block], str] | None:
    """The blocks of a text and what is around them, ``None`` where there are more than so many.

    >>> apart("So: {'score': 2}.", 40) is None, apart("{} {}", 1) is None
    (False, True)
    """
    inner = list(islice(blocks(text), most + 1))
    if len(inner) > most:
        return None
    parts, position = [], 0
    for block in inner:
        parts.append(text[position : block.start])
        position = block.end
    return inner, "\n".join([*parts, text[position:]])


class _Reader:
    """Reads one block; the position only ever goes forward."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = self.position = start
        self._stack: list[str] = []
        self._fields: list[Field] = []
        self._key: str | None = None
        self._pending: Field | None = None
        """A value that nothing was read behind yet."""

    def read(self) -> Block:
        """The block that begins at the start."""
        text = self._text
        for _ in range(_MOST_TOKENS):
            if self.position >= len(text):
                break
            sign = text[self.position]
            if sign in "{[":
                self._open(sign)
            elif sign in "}]":
                if self._close(sign):
                    return self._block(closed=True)
            elif not self._between(sign) and not self._word(sign):
                break
        self.position = len(text)
        return self._block(closed=False)

    def _block(self, *, closed: bool) -> Block:
        return Block(tuple(self._fields), self._start, self.position, closed)

    @property
    def _depth(self) -> int:
        return self._stack.count("{") if len(self._stack) < 64 else 64

    def _between(self, sign: str) -> bool:
        """Go past what stands between keys and values; whether it was such a sign."""
        if sign == "#" and self._key is None:
            line_end = self._text.find("\n", self.position)
            self.position = line_end if line_end >= 0 else len(self._text)
            return True
        if sign == ",":
            self._settle()
        elif sign == "\n":
            self._settle(keep_key=True)
        elif sign not in ":=" and not sign.isspace():
            return False
        self.position += 1
        return True

    def _open(self, sign: str) -> None:
        if self._key is not None:
            self._fields.append(Field(self._key, sign, self._depth))
            self._key = None
        self._stack.append(sign)
        self.position += 1

    def _close(self, sign: str) -> bool:
        """Whether the block ends here."""
        self._settle()
        if self._stack[-1] == _PAIRS[sign]:
            self._stack.pop()
        self.position += 1
        return not self._stack

    def _settle(self, *, keep_key: bool = False) -> None:
        """Something follows the value: it is complete."""
        if self._pending is not None:
            self._fields.append(self._pending)
        self._pending = None
        if not keep_key:
            self._key = None

    def _word(self, sign: str) -> bool:
        """Read a string, a number or words; whether there was an end to it."""
        is_value = self._key is not None or self._stack[-1] == "["
        if sign in _QUOTES and self._pending is None:
            end = _string_end(self._text, self.position + 1, sign)
            if end is None:
                return False
            word = self._text[self.position + 1 : end]
            self.position = end + 1
        else:
            match = (_VALUE if is_value else _KEY).match(self._text, self.position)
            if match is None:
                self.position += 1
                return True
            word, self.position = _COMMENT.split(match[0], maxsplit=1)[0], match.end()
        self._take(word.strip(), is_value=is_value)
        return True

    def _take(self, word: str, *, is_value: bool) -> None:
        if not is_value:
            if word[:1].isdigit() and self._fields and not _COLON.match(self._text, self.position):
                # A decimal comma: what was taken for a value is the part before it.
                last = self._fields.pop()
                word, self._key = f"{last.value},{word}", last.key
                self._pending = Field(last.key, word, last.depth)
                return
            self._key = word.strip("*_ ").casefold() or None
        elif self._key is not None:
            before = "" if self._pending is None else f"{self._pending.value} "
            self._pending = Field(self._key, before + word, self._depth)


def _string_end(text: str, start: int, quote: str) -> int | None:
    """Position of the quote that ends a string, ``None`` where there is none."""
    for match in _QUOTE_OR_ESCAPE[quote].finditer(text, start):
        if match[0] == quote and _STRING_ENDS.match(text, match.end()):
            return match.start()
    return None
