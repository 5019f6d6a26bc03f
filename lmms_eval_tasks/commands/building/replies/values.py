"""Reading one value of JSON or Python, or nearly so, from a place in a text on.

One reader for both, as models mix them: keys in single quotes beside ``true``, a trailing comma, a
comment. A string ends at the first of its quotes behind which an object or a list can go on, so
that a quote that should have been escaped does not end it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from lmms_eval_captions.judges.files import whole


class Object(list[tuple[str, object]]):
    """An object: its keys and values in order, repeated keys too."""


class Broken(Exception):  # noqa: N818  # no fault of ours: it never leaves this package
    """What is read is no value, or does not end."""


_DEEPEST: Final = 12
"""Brackets within brackets; a value that is deeper is none."""
_LONGEST: Final = 20_000
"""Characters of a string; one that does not end before is none."""
_BETWEEN: Final = re.compile(r"(?:\s+|(?:#|//)[^\n]*)*")
_OPENING: Final = re.compile(r"\"\"\"|'''|[\"'\u201c\u2018]")
_CLOSES: Final = {"\u201c": "\u201d", "\u2018": "\u2019"}
_NEXT_KEY: Final = r"\s*(?:[\"'\u201c\u2018}#]|//|\.|[A-Za-z_][\w ]{0,40}:)"
_ENDS: Final = {
    "key": re.compile(r"\s*:"),
    "value": re.compile(rf"\s*(?:\}}|#|//|,{_NEXT_KEY})"),
    "item": re.compile(r"\s*(?:[\]),#]|//)"),
}
"""What follows a string in its place; the text's end does not, as the string may go on there."""
_QUOTES: Final = {
    quote: re.compile(rf"\\.|{quote}", re.DOTALL)
    for quote in ('"""', "'''", '"', "'", "\u201d", "\u2019")
}
_BARE_KEY: Final = re.compile(r"[A-Za-z_][\w -]{0,60}(?=\s*:)")
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]{1,15}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?=\s*[,}\])#/])")
_AT_END: Final = re.compile(r"[-+.\w]{0,40}\s*\Z")
"""A number or a word that may go on behind the text's end."""
_WORD: Final = re.compile(r"(?:true|false|null|none)\b", re.IGNORECASE)
_WORDS: Final = {"true": True, "false": False, "null": None, "none": None}
_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U(00[01][0-9a-fA-F]{5})|x([0-9a-fA-F]{2})|(.))", re.DOTALL
)
_SIGNS: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": "",
                 '"': '"', "'": "'", "\\": "\\", "/": "/", "`": "`"}  # fmt: skip


class ValueReader:
    """Reads one value; the position only ever goes forward."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self.position = start
        self._depth = 0
        self.complete = Object()
        """The pairs of the outermost object that have been read."""

    @property
    def is_repeating(self) -> bool:
        """Whether the outermost object has a key twice."""
        keys = [key for key, _ in self.complete]
        return len(set(keys)) < len(keys)

    def read(self) -> object:
        """The value that begins at the position, which is behind it afterwards.

        Raises:
            Broken: If it is none, or does not end.
        """
        return self._value("item")

    def _value(self, place: str) -> object:
        sign = self._text[self.position : self.position + 1]
        if sign == "{":
            return self._object()
        if sign == "[":
            return self._items("]")
        if sign == "(":
            return tuple(self._items(")"))
        if _OPENING.match(self._text, self.position):
            return self._string(place)
        return self._number_or_word()

    def _object(self) -> Object:
        pairs = self.complete if self._depth == 0 else Object()

        def read_pair() -> None:
            key = self._key()
            self._skip()
            self._expect(":")
            self._skip()
            pairs.append((key, self._value("value")))

        self._members("}", read_pair)
        return pairs

    def _items(self, closing: str) -> list[object]:
        items: list[object] = []
        self._members(closing, lambda: items.append(self._value("item")))
        return items

    def _members(self, closing: str, read: Callable[[], None]) -> None:
        """Read what is between two brackets, member by member, and go behind the second."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Broken
        self.position += 1
        self._skip()
        while not self._text.startswith(closing, self.position):
            read()
            self._skip()
            if not self._text.startswith(closing, self.position):
                self._expect(",")
                self._skip()
        self.position += 1
        self._depth -= 1

    def _key(self) -> str:
        if _OPENING.match(self._text, self.position):
            return self._string("key")
        bare = _BARE_KEY.match(self._text, self.position)
        if bare is None:
            raise Broken
        self.position = bare.end()
        return bare[0]

    def _string(self, place: str) -> str:
        opening = _OPENING.match(self._text, self.position)
        if opening is None:
            raise Broken
        start = opening.end()
        quote = _CLOSES.get(opening[0], opening[0])
        for found in _QUOTES[quote].finditer(self._text, start, start + _LONGEST):
            if found[0] == quote and _ENDS[place].match(self._text, found.end()):
                self.position = found.end()
                return _unescaped(self._text[start : found.start()])
        self.position = min(start + _LONGEST, len(self._text))
        raise Broken

    def _number_or_word(self) -> float | bool | None:
        number = _NUMBER.match(self._text, self.position)
        if number is not None:
            self.position = number.end()
            return int(number[0]) if number[0].lstrip("+-").isdigit() else float(number[0])
        word = _WORD.match(self._text, self.position)
        if word is None:
            if _AT_END.match(self._text, self.position):
                self.position = len(self._text)
            raise Broken
        self.position = word.end()
        return _WORDS[word[0].lower()]

    def _expect(self, sign: str) -> None:
        if not self._text.startswith(sign, self.position):
            raise Broken
        self.position += 1

    def _skip(self) -> None:
        """Go past white space and comments."""
        between = _BETWEEN.match(self._text, self.position)
        if between is not None:
            self.position = between.end()


def _unescaped(text: str) -> str:
    r"""What a string says.

    >>> _unescaped(r"a \"b\"\u00e9\n \d")
    'a "b"é\n \\d'
    """
    if "\\" not in text:
        return text
    return whole(_ESCAPE.sub(_character, text))


def _character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code is None:
        return _SIGNS.get(escape[4], escape[0])
    number = int(code, 16)
    return chr(number) if number < 0x110000 else "\ufffd"
