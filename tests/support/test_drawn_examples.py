"""``make test`` tries the same examples every time."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.skipif("FULL_SIZE" in os.environ, reason="other examples are drawn in each run")
def test_examples_depend_on_the_test_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the time nor a module that another test has loaded draws other ones."""
    before = _drawn()
    assert _drawn() == before
    module = ModuleType("module_of_another_test")
    path = tmp_path / "module.py"
    path.write_text(f"CONSTANTS = {list(range(10**6, 10**6 + 999))}\n")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert _drawn() == before


def _drawn() -> list[int]:
    seen: list[int] = []

    @settings(max_examples=500)
    @given(st.integers())
    def draw(number: int) -> None:
        seen.append(number)

    draw()
    return seen
