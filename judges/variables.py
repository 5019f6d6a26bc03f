"""Environment variables as rows of a table: what each is called, means, and how it is read.

A record of settings is a dataclass whose fields are made by :func:`required` and :func:`optional`;
:func:`read_record` reads one, :func:`variables_of` lists what it reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import inf, nan
from pathlib import Path
from typing import Final, TypeVar, cast

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.surrogates import whole

T = TypeVar("T")
S = TypeVar("S", bound=str)

_VARIABLE: Final = "variable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One environment variable."""

    name: str
    meaning: str
    """What it sets, in a few words."""
    default: str
    """What holds where it is not set: a text that is read in its place, or words."""
    is_optional: bool
    """Whether ``default`` is words, and the value ``None``."""
    parse: Callable[[str, str], object]
    """From the name, for messages, and a text to the value; raises ``SettingsError``."""

    def read(self, environ: Mapping[str, str]) -> object:
        """The value; a blank variable is not set."""
        text = environ.get(self.name, "").strip()
        if not text and self.is_optional:
            return None
        return self.parse(self.name, text or self.default)


def required(name: str, meaning: str, parse: Callable[[str, str], T], *, default: str) -> T:
    """A field of a record: a variable that always has a value.

    Args:
        name: The variable.
        meaning: What it sets, in a few words.
        parse: From the name, for messages, and a text to the value.
        default: Text that is read where it is not set.
    """
    row = Variable(name=name, meaning=meaning, default=default, is_optional=False, parse=parse)
    return cast("T", field(metadata={_VARIABLE: row}))


def optional(
    name: str, meaning: str, parse: Callable[[str, str], T], *, otherwise: str
) -> T | None:
    """A field of a record: a variable that may be ``None``; ``otherwise`` says what then holds."""
    row = Variable(name=name, meaning=meaning, default=otherwise, is_optional=True, parse=parse)
    return cast("T | None", field(metadata={_VARIABLE: row}))


def variables_of(record: type) -> dict[str, Variable]:
    """The variables of a record by the names of its fields."""
    return {each.name: each.metadata[_VARIABLE] for each in fields(record)}


def read_record(record: type[T], environ: Mapping[str, str]) -> T:
    """A record from the environment.

    Raises:
        SettingsError: If a variable holds something that cannot be used; the text names it.
    """
    return record(**{name: row.read(environ) for name, row in variables_of(record).items()})


def parse_text(_: str, text: str) -> str:
    """The text, without half characters."""
    return whole(text)


def parse_path(_: str, text: str) -> Path:
    """A file or folder; ``~`` is the user's own."""
    return Path(text).expanduser()


def parse_switch(name: str, text: str) -> bool:
    """``1`` for on, ``0`` for off."""
    return choice_of("0", "1")(name, text) == "1"


def parse_dollars(name: str, text: str) -> float:
    """US dollars above 0, with or without a dollar sign."""
    dollars = _number(text.removeprefix("$"))
    if not 0.0 < dollars < inf:
        raise SettingsError(f"{name}: expected US dollars above 0, such as 20, got {text!r}")
    return dollars


def whole_number(*, least: int) -> Callable[[str, str], int]:
    """A reader of a whole number."""

    def parse(name: str, text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text) or int(text) < least:
            raise SettingsError(
                f"{name}: expected a whole number of at least {least}, got {text!r}"
            )
        return int(text)

    return parse


def number(expected: str, is_usable: Callable[[float], bool]) -> Callable[[str, str], float]:
    """A reader of a number.

    Args:
        expected: What is expected, for messages.
        is_usable: Whether a number will do; handed ``nan`` for what is none.
    """

    def parse(name: str, text: str) -> float:
        value = _number(text)
        if not is_usable(value):
            raise SettingsError(f"{name}: expected {expected}, got {text!r}")
        return value

    return parse


def choice_of(*choices: S) -> Callable[[str, str], S]:
    """A reader of a text that must be one of these."""

    def parse(name: str, text: str) -> S:
        for choice in choices:
            if choice == text:
                return choice
        raise SettingsError(f"{name}: expected one of {', '.join(choices)}, got {text!r}")

    return parse


def _number(text: str) -> float:
    """A number, ``nan`` where it is none: no comparison with that holds."""
    try:
        return float(text)
    except ValueError:
        return nan
