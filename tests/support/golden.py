"""Golden outputs: the numbers that users get, kept as JSON next to the tests.

A number must be equal, to 1e-12 of itself; wording, paths and times are no part of a golden.
``make golden`` writes them anew and prints the differences.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import Any, Final

EXPECTED: Final = Path(__file__).parents[1] / "golden" / "expected"
_NUMBER: Final = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?")
_VOLATILE: Final = re.compile(
    r"(?:^|_)(?:started|finished|seconds|date|time|paths?|versions?|port|url|s|hash|cache|config"
    r"|stamp|reasons)(?:_|$)"
)


def check(name: str, document: object) -> None:
    """Compare a document with its golden.

    Args:
        name: Name of the golden.
        document: Anything that JSON can hold; see :func:`numbers` and :func:`numbers_of_text`.
    """
    path = EXPECTED / f"{name}.json"
    actual = json.loads(json.dumps(document))
    expected = json.loads(path.read_text()) if path.exists() else None
    differences = list(_differences(expected, actual))
    if "GOLDEN" in os.environ:
        for difference in differences:
            print(f"{name}: {difference}")
        if differences:
            path.parent.mkdir(exist_ok=True)
            path.write_text(_dumped(actual), encoding="utf-8")
        return
    assert not differences, "\n".join(differences[:20])


def numbers(document: Any) -> Any:
    """A document with its numbers, booleans, missing values and one-word texts alone."""
    if isinstance(document, dict):
        kept = {
            str(key): numbers(value)
            for key, value in document.items()
            if not _VOLATILE.search(str(key))
        }
        return {key: value for key, value in kept.items() if value not in ({}, [], "")}
    if isinstance(document, list):
        return [numbers(value) for value in document]
    if isinstance(document, str):
        return document if re.fullmatch(r"[\w.:&-]{1,40}", document) else ""
    return document


def numbers_of_text(text: str) -> list[float]:
    """Every number of a text, in order."""
    return [float(number) for number in _NUMBER.findall(text)]


def _dumped(document: Any) -> str:
    """A document with a line for each of its parts, so that a change is a few lines."""
    if not isinstance(document, dict):
        return f"{json.dumps(document)}\n"
    parts = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in document.items())
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _differences(expected: Any, actual: Any, where: str = "") -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            yield from _differences(expected.get(key), actual.get(key), f"{where}/{key}")
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{where}: {len(expected)} values before, {len(actual)} now"
        for index, pair in enumerate(zip(expected, actual, strict=False)):
            yield from _differences(*pair, f"{where}/{index}")
    elif not _is_same(expected, actual):
        yield f"{where}: {expected!r} before, {actual!r} now"


def _is_same(expected: object, actual: object) -> bool:
    if isinstance(expected, float | int) and isinstance(actual, float | int):
        both_nan = expected != expected and actual != actual
        return both_nan or isclose(expected, actual, rel_tol=1e-12, abs_tol=1e-12)
    return expected == actual
