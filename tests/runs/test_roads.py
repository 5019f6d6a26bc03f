"""The five tutorials run as they stand, and print what their pages show."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from roads import NAMES, ROADS, play

pytestmark = pytest.mark.cli


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the built-in sample."""
    cache = tmp_path_factory.mktemp("sample")
    sample_root(cache)
    return cache


@pytest.mark.parametrize("name", NAMES)
def test_a_road_prints_what_its_page_shows(name: str, sample: Path, tmp_path: Path) -> None:
    shown = (ROADS / f"{name}.txt").read_text(encoding="utf-8")
    assert play(name, tmp_path, sample) == shown
