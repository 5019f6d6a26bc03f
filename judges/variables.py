"""Environment variables as rows of a table: what each is called, and how it is read.

A record of settings is a dataclass whose fields are made by :func:`required` and :func:`optional`;
:func:`read_record` reads one, :func:`variables_of` lists what it reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import inf, nan
from pathlib import Path
from typing import Final, TypeVar, cast

from lmms_eval_captions.judges.errors import SettingsError

T = TypeVar("T")
S = TypeVar("S", bound=str)

_VARIABLE: Final = "variable"


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable."""

    name: str
    parse: Callable[[str], object]
    """From a text to the value; raises ``ValueError`` with what was expected."""
    default: str | None
    """Text that is read where it is not set; without, its value is then ``None``."""

    def read(self, environ: Mapping[str, str]) -> object:
        """The value; a blank variable is not set.

        Raises:
            SettingsError: If it cannot be used; the text names the variable.
        """
        text = environ.get(self.name, "").strip() or self.default
        if text is None:
            return None
        try:
            return self.parse(text)
        except ValueError as error:
            raise SettingsError(f"{self.name}: expected {error}, got {text!r}") from None


def required(name: str, parse: Callable[[str], T], default: str) -> T:
    """A field of a record: a variable that always has a value; see :class:`Variable`."""
    return cast("T", field(metadata={_VARIABLE: Variable(name, parse, default)}))


def optional(name: str, parse: Callable[[str], T]) -> T | None:
    """A field of a record: a variable whose value is ``None`` where it is not set."""
    return cast("T | None", field(metadata={_VARIABLE: Variable(name, parse, None)}))


def variables_of(record: type) -> dict[str, Variable]:
    """The variables of a record by the names of its fields."""
    return {each.name: each.metadata[_VARIABLE] for each in fields(record)}


def read_record(record: type[T], environ: Mapping[str, str]) -> T:
    """A record from the environment.

    Raises:
        SettingsError: If a variable holds something that cannot be used; the text names it.
    """
    return record(**{name: row.read(environ) for name, row in variables_of(record).items()})


def path(text: str) -> Path:
    """A file or folder; ``~`` is the user's own."""
    return Path(text).expanduser()


def switch(text: str) -> bool:
    """``1`` for on, ``0`` for off."""
    return choice_of("0", "1")(text) == "1"


def dollars_or_none(text: str) -> float | None:
    """US dollars above 0, with or without a dollar sign; ``None`` of "none"."""
    if text.lower() == "none":
        return None
    parse = number("US dollars above 0, such as 20, or none", lambda value: 0 < value < inf)
    return parse(text.removeprefix("$"))


def json_object(text: str) -> str:
    """Return the text of a JSON object."""
    try:
        is_object = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        is_object = False
    if not is_object:
        raise ValueError('a JSON object such as {"reasoning_effort": "low"}')
    return text


def whole_number(*, least: int) -> Callable[[str], int]:
    """A reader of a whole number."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text) or int(text) < least:
            raise ValueError(f"a whole number of at least {least}")
        return int(text)

    return parse


def number(expected: str, is_usable: Callable[[float], bool]) -> Callable[[str], float]:
    """A reader of a number.

    Args:
        expected: What is expected, for messages.
        is_usable: Whether a number will do; handed ``nan`` for what is none.
    """

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = nan  # no comparison with that holds
        if not is_usable(value):
            raise ValueError(expected)
        return value

    return parse


def choice_of(*choices: S) -> Callable[[str], S]:
    """A reader of a text that must be one of these."""

    def parse(text: str) -> S:
        for choice in choices:
            if choice == text:
                return choice
        raise ValueError(f"one of {', '.join(choices)}")

    return parse
