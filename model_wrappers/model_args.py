"""Arguments of captioners, as ``--model_args`` gives them."""

from __future__ import annotations

import difflib
import inspect
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_captions.judges.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable


def refuse_unknown(model: str, *, known: Iterable[str], unknown: Iterable[str]) -> None:
    """Raise at a typing error in ``--model_args``.

    Raises:
        SettingsError: If there is an unknown argument; the text names the likely one, and lists
            those that exist.

    >>> refuse_unknown("CaptionFile", known=["path", "missing"], unknown=["pth"])
    Traceback (most recent call last):
      ...
    lmms_eval_captions.judges.errors.SettingsError: --model_args: CaptionFile does not know \
['pth'] (path is meant?); it takes ['missing', 'path']
    """
    if names := sorted(unknown):
        takes = sorted(known)
        near = [like for name in names for like in difflib.get_close_matches(name, takes, 1)]
        meant = f" ({', '.join(near)} {'is' if len(near) == 1 else 'are'} meant?)" if near else ""
        raise SettingsError(f"--model_args: {model} does not know {names}{meant}; it takes {takes}")


def shown_name(model: type) -> str:
    """Return a captioner's name for ``--model``: ours by its module, a custom one by its class."""
    package, _, module = model.__module__.rpartition(".")
    is_ours = package.startswith("lmms_eval_captions.") and module.startswith("caption_")
    return module if is_ours else model.__name__


def parse_model_args(text: str) -> dict[str, Any]:
    """Parse ``--model_args`` as lmms-eval does.

    Raises:
        SettingsError: If one has no name.
    """
    from lmms_eval.utils import simple_parse_args_string

    try:
        arguments: dict[str, Any] = simple_parse_args_string(text)
    except ValueError as error:
        raise SettingsError(
            f"--model_args: expected name=value,name=value, got {text!r}; a value with commas "
            "stands in braces or quotes"
        ) from error
    return arguments


def arguments_of(model: type, base: type) -> set[str]:
    """Return the arguments of a class's ``__init__`` and those of its bases down to ``base``."""
    inits = (vars(cls).get("__init__") for cls in model.__mro__ if issubclass(cls, base))
    parameters = [p for init in inits if init for p in inspect.signature(init).parameters.values()]
    names = {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    return names - {"self"}


def at_least_one(name: str, value: object) -> int:
    """Return a whole number of at least 1, which may come as text.

    Raises:
        SettingsError: If it is anything else.
    """
    text = str(value)
    if isinstance(value, bool) or not text.isdecimal() or int(text) < 1:
        raise SettingsError(f"{name}: expected a whole number of at least 1, got {value!r}")
    return int(text)


def true_or_false(name: str, value: object) -> bool:
    """Return a switch; lmms-eval makes ``true`` and ``false``, in any case, a ``bool``.

    Raises:
        SettingsError: If it is anything else: every text, ``no`` too, would count as true.
    """
    if not isinstance(value, bool):
        raise SettingsError(f"--model_args: expected {name}=true or false, got {value!r}")
    return value


def above_zero(name: str, value: object) -> float:
    """Return a finite number above 0.

    Raises:
        SettingsError: If it is anything else.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < float(str(value)) < math.inf:
        raise SettingsError(f"--model_args: {name}: expected a number above 0, got {value!r}")
    return float(str(value))


def require_folder(name: str) -> None:
    """Raise at a path that is no folder: a hub would take it for the name of a repository.

    Args:
        name: What ``pretrained=`` says; one that is no path is left alone.

    Raises:
        SettingsError: If it is a path, and no folder is there.
    """
    if name.startswith(("/", "./", "../", "~")) and not Path(name).is_dir():
        raise SettingsError(
            f"there is no folder {name}: pretrained= takes the folder of a checkpoint, written out "
            "in full (a shell leaves ~ as it is there), or a name on the hub"
        )


def mapping_of(name: str, value: object) -> dict[str, object]:
    """Return an argument of names and values: a JSON object, or ``name:value;name:value``.

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
    """Return a value as JSON has it, else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
