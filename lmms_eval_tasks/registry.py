"""The benchmarks of this package: the one place that names them all."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Final

FOLDERS: Final = ("vdc", "vidcapbench", "vcapsbench", "capquiz", "msvd_eval")
"""Folders beside this file, a benchmark each. A new one joins with its name here."""


def modules(part: str) -> Iterator[ModuleType]:
    """A module of every benchmark that has it, without a look at the benchmark itself.

    Args:
        part: The module's name, such as ``sample``.
    """
    package = __name__.rpartition(".")[0]
    for folder in FOLDERS:
        name = f"{package}.{folder}.{part}"
        if find_spec(name) is not None:
            yield import_module(name)
