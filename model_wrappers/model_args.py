"""Arguments of captioners, as ``--model_args`` gives them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
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


def mapping_of(name: str, value: object) -> dict[str, object]:
    """An argument that holds names and values: a JSON object, or ``name:value;name:value``.

    Raises:
        SettingsError: If it is neither.

    >>> mapping_of("extra_body", '{"top_k": 1, "chat_template_kwargs": {"thinking": false}}')
    {'top_k': 1, 'chat_template_kwargs': {'thinking': False}}
    >>> mapping_of("extra_body", "top_k:1;reasoning_effort:low")
    {'top_k': 1, 'reasoning_effort': 'low'}
    """
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    text = str(value).strip().strip("'")
    try:
        given = json.loads(text)
    except ValueError:
        pairs = [part.partition(":") for part in text.split(";") if part.strip()]
        if text[:1] not in "{[" and pairs and all(sign and key for key, sign, _ in pairs):
            return {key.strip(): _plain(item.strip()) for key, _, item in pairs}
        given = None
    if not isinstance(given, dict):
        raise SettingsError(
            f"--model_args: {name}: expected a JSON object such as "
            f"""{name}={{"name": 1}}, or name:value;name:value, got {value!r}"""
        )
    return given


def _plain(text: str) -> object:
    """A value as JSON has it, else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
