"""The signatures of a run's tasks: what they have in common is said once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.lmms_eval_tasks.summary.text import WIDTH

_COUNTS: Final = ("unscored", "empty", "dropped")
"""Fields that stand in the table already, of each of several tasks."""


def signature_lines(
    tasks: Mapping[str, Mapping[str, Any]], width: int = WIDTH, *, is_short: bool = False
) -> list[str]:
    """The signatures, broken between fields.

    Args:
        tasks: Those of a judging document.
        width: Columns at most.
        is_short: Whether only what all tasks have in common is told, and where the rest is.
    """
    signatures = {
        name: Signature.parse(task["signature"] or "")
        for name, task in tasks.items()
        if not task["tasks"]
    }
    if len(signatures) == 1:
        return _broken("signature", str(next(iter(signatures.values()))).split("|"), width)
    every = [signature.fields for signature in signatures.values()]
    common = {
        name: value
        for name, value in every[0].items()
        if name not in _COUNTS and all(fields.get(name) == value for fields in every)
    }
    lines = _broken("signature", _fields(common.items()), width)
    if is_short:
        told = {*common, *_COUNTS}
        others = dict.fromkeys(name for fields in every for name in fields if name not in told)
        return lines + _broken("  and of each task, in the judging file", [*others], width)
    for name, signature in signatures.items():
        told = {*common, *_COUNTS}
        own = [pair for pair in signature.fields.items() if pair[0] not in told]
        if own:
            lines += _broken(f"  {name}", _fields(own), width)
    return lines


def _fields(fields: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{name}:{value}" for name, value in fields]


def _broken(label: str, fields: list[str], width: int) -> list[str]:
    """Fields separated by bars, as many as fit on each line.

    >>> _broken("s", ["a:1", "b:2", "c:3"], 11)
    ['s: a:1|b:2|', '    c:3']
    """
    lines = [f"{label}: "]
    for place, field in enumerate(fields):
        text = field if place == len(fields) - 1 else f"{field}|"
        if len(lines[-1]) + len(text) > width and lines[-1].strip():
            lines.append("    ")
        lines[-1] += text
    return lines
