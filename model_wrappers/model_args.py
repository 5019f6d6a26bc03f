"""Arguments of captioners, as ``--model_args`` gives them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from lmms_eval_captions.judges.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable


def refuse_unknown(model: str, *, known: Iterable[str], unknown: Iterable[str]) -> None:
    """Stop at a typing error in ``--model_args``.

    Raises:
        SettingsError: If there is an unknown argument; the text lists those that exist.
    """
    if names := sorted(unknown):
        raise SettingsError(
            f"--model_args: {model} does not know {names}; it takes {sorted(known)}"
        )


def arguments_of(model: type, base: type) -> set[str]:
    """Names that a class's ``__init__`` takes, those of its bases down to ``base`` included."""
    inits = (vars(cls).get("__init__") for cls in model.__mro__ if issubclass(cls, base))
    parameters = [p for init in inits if init for p in inspect.signature(init).parameters.values()]
    names = {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    return names - {"self"}


def at_least_one(name: str, value: object) -> int:
    """A whole number of at least 1, which may come as text.

    Raises:
        SettingsError: If it is anything else.
    """
    text = str(value)
    if isinstance(value, bool) or not text.isdecimal() or int(text) < 1:
        raise SettingsError(f"{name}: expected a whole number of at least 1, got {value!r}")
    return int(text)
