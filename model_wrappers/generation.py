"""How a caption is to be generated: the settings of a task's YAML, read once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmms_eval_captions.judges.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_MAX_NEW_TOKENS = 1024
"""Where a task does not say. Source: VDC, appendix H, the longest of the five benchmarks."""


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
        """The settings of an lmms-eval request (``generation_kwargs``, ``--gen_kwargs``).

        A temperature above 0 means sampling unless ``do_sample`` says otherwise. Settings that no
        captioner knows are left out, as lmms-eval's own wrappers do.

        Raises:
            SettingsError: If a value is of the wrong kind, or out of its bounds.

        >>> Generation.read({"max_new_tokens": 64, "temperature": 0.7, "until": ["##"]})
        ... # doctest: +NORMALIZE_WHITESPACE
        Generation(max_new_tokens=64, do_sample=True, temperature=0.7, top_p=None, top_k=None,
                   num_beams=1, repetition_penalty=None, until=('##',))
        """
        temperature = _number(kwargs, "temperature") or 0.0
        asked = kwargs.get("do_sample")
        do_sample = temperature > 0 if asked is None else bool(asked)
        top_k, penalty = _number(kwargs, "top_k"), _number(kwargs, "repetition_penalty")
        longest = _number(kwargs, "max_new_tokens") or _number(kwargs, "max_gen_toks")
        _within("max_new_tokens", longest, least=0)
        _within("temperature", temperature, least=0)
        beams, top_p = _number(kwargs, "num_beams"), _number(kwargs, "top_p")
        _within("num_beams", beams, least=0)
        _within("top_p", top_p, least=0, most=1)
        return cls(
            max_new_tokens=int(longest or DEFAULT_MAX_NEW_TOKENS),
            do_sample=do_sample,
            # Deviation from greedy: a YAML that asks for sampling at temperature 0 means 1.
            temperature=(temperature or 1.0) if do_sample else 0.0,
            top_p=top_p if do_sample else None,
            top_k=int(top_k) if top_k is not None and do_sample else None,
            num_beams=int(beams or 1),
            repetition_penalty=penalty,
            until=_strings(kwargs.get("until")),
        )

    def cut(self, text: str) -> str:
        """The text before the first stop in it, else unchanged.

        >>> Generation(until=("##",)).cut("A dog. ## More"), Generation().cut(" A dog. ")
        ('A dog. ', ' A dog. ')
        """
        ends = [text.find(stop) for stop in self.until]
        return text[: min((end for end in ends if end >= 0), default=len(text))]


def _number(kwargs: Mapping[str, object], name: str) -> float | None:
    value = kwargs.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SettingsError(f"generation setting {name}: expected a number, got {value!r}")
    return value


def _within(name: str, value: float | None, *, least: float, most: float = math.inf) -> None:
    if value is not None and not least <= value <= most:
        bounds = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
        raise SettingsError(f"generation setting {name}: expected a number {bounds}, got {value}")


def _strings(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list | tuple) or not all(isinstance(stop, str) for stop in stops):
        raise SettingsError(f"generation setting until: expected text or a list, got {value!r}")
    return tuple(stop for stop in stops if stop)
