"""Arguments of captioners (``--model_args``) and generation settings (``--gen_kwargs``)."""

from __future__ import annotations

import difflib
import inspect
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval_captions.judges.errors import SettingsError


def refuse_unknown(model: str, *, known: Iterable[str], unknown: Iterable[str]) -> None:
    """Raise a ``SettingsError`` at a typing error in ``--model_args``.

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
    """Parse ``--model_args`` as lmms-eval does; a ``SettingsError`` if one has no name."""
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
    """Return a whole number of at least 1, which may come as text, or raise ``SettingsError``."""
    text = str(value)
    if isinstance(value, bool) or not text.isdecimal() or int(text) < 1:
        raise SettingsError(f"{name}: expected a whole number of at least 1, got {value!r}")
    return int(text)


def one_of(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise a ``SettingsError`` if a value is none of the choices."""
    if value not in choices:
        raise SettingsError(f"{name}={value!r} is not one of {', '.join(choices)}")


def true_or_false(name: str, value: object) -> bool:
    """Return a switch; lmms-eval makes ``true`` and ``false``, in any case, a ``bool``."""
    if not isinstance(value, bool):
        raise SettingsError(f"--model_args: expected {name}=true or false, got {value!r}")
    return value


def above_zero(name: str, value: object) -> float:
    """Return a finite number above 0, or raise ``SettingsError``."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < float(str(value)) < math.inf:
        raise SettingsError(f"--model_args: {name}: expected a number above 0, got {value!r}")
    return float(str(value))


def require_folder(name: str) -> None:
    """Raise at a path that is no folder: a hub would take it for the name of a repository."""
    if name.startswith(("/", "./", "../", "~")) and not Path(name).is_dir():
        raise SettingsError(
            f"there is no folder {name}: pretrained= takes the folder of a checkpoint, written out "
            "in full (a shell leaves ~ as it is there), or a name on the hub"
        )


def mapping_of(name: str, value: object) -> dict[str, object]:
    """Return an argument of names and values: a JSON object, or ``name:value;name:value``.

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

    def plain(text: str) -> object:
        """Return a value as JSON has it, else as text."""
        try:
            return json.loads(text)
        except ValueError:
            return text

    given = plain(text)
    if isinstance(given, str):
        pairs = [part.partition(":") for part in text.split(";") if part.strip()]
        if text[:1] not in "{[" and pairs and all(sign and key for key, sign, _ in pairs):
            return {key.strip(): plain(item.strip()) for key, _, item in pairs}
    if not isinstance(given, dict):
        raise SettingsError(
            f"--model_args: {name}: expected a JSON object such as "
            f"""{name}={{"name": 1}}, or name:value;name:value, got {value!r}"""
        )
    return given


DEFAULT_MAX_NEW_TOKENS = 1024
"""Default of tasks that set none. Source: VDC, appendix H, the longest of the five benchmarks."""


@dataclass(frozen=True, slots=True)
class Generation:
    """Generation settings of one request; requests with equal ones share a batch."""

    max_new_tokens: int = DEFAULT_MAX_NEW_TOKENS
    do_sample: bool = False
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    num_beams: int = 1
    repetition_penalty: float | None = None
    until: tuple[str, ...] = ()
    """A caption ends before the first of these."""

    @classmethod
    def read(cls, kwargs: Mapping[str, object]) -> Generation:
        """Read the settings of an lmms-eval request (``generation_kwargs``, ``--gen_kwargs``).

        A temperature above 0 means sampling unless ``do_sample`` says otherwise. Settings that no
        captioner knows are left out, as lmms-eval's own wrappers do.

        >>> Generation.read({"max_new_tokens": 64, "temperature": 0.7, "until": ["##"]})
        ... # doctest: +NORMALIZE_WHITESPACE
        Generation(max_new_tokens=64, do_sample=True, temperature=0.7, top_p=None, top_k=None,
                   num_beams=1, repetition_penalty=None, until=('##',))
        """
        temperature = _number(kwargs, "temperature", least=0) or 0.0
        asked = kwargs.get("do_sample")
        do_sample = temperature > 0 if asked is None else bool(asked)
        top_k, top_p = _number(kwargs, "top_k"), _number(kwargs, "top_p", least=0, most=1)
        longest = _number(kwargs, "max_new_tokens", least=0) or _number(
            kwargs, "max_gen_toks", least=0
        )
        return cls(
            max_new_tokens=int(longest or DEFAULT_MAX_NEW_TOKENS),
            do_sample=do_sample,
            # Deviation from greedy: a YAML that asks for sampling at temperature 0 means 1.
            temperature=(temperature or 1.0) if do_sample else 0.0,
            top_p=top_p if do_sample else None,
            top_k=int(top_k) if top_k is not None and do_sample else None,
            num_beams=int(_number(kwargs, "num_beams", least=0) or 1),
            repetition_penalty=_number(kwargs, "repetition_penalty"),
            until=_strings(kwargs.get("until")),
        )

    def cut(self, text: str) -> str:
        """Return the text before the first stop in it, else unchanged.

        >>> Generation(until=("##",)).cut("A dog. ## More"), Generation().cut(" A dog. ")
        ('A dog. ', ' A dog. ')
        """
        ends = [text.find(stop) for stop in self.until]
        return text[: min((end for end in ends if end >= 0), default=len(text))]


def _number(
    kwargs: Mapping[str, object], name: str, *, least: float = -math.inf, most: float = math.inf
) -> float | None:
    value = kwargs.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SettingsError(f"generation setting {name}: expected a number, got {value!r}")
    if not least <= value <= most:
        bounds = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
        raise SettingsError(f"generation setting {name}: expected a number {bounds}, got {value}")
    return value


def _strings(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list | tuple) or not all(isinstance(stop, str) for stop in stops):
        raise SettingsError(f"generation setting until: expected text or a list, got {value!r}")
    return tuple(stop for stop in stops if stop)
