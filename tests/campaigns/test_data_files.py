"""The campaign of mutated data files, in short; see benchmarks/data_files.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import data_files
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root

if TYPE_CHECKING:
    from pathlib import Path

KINDS = (
    "vdc", "vidcapbench", "vcapsbench", "capquiz", "msvd_eval", "captions.jsonl", "captions list",
    "captions object", "captions.csv", "sample log", "scores.jsonl", "scores.json", "scores.csv",
    "verdicts.csv", "verdicts.zip", "results", "prices", "prompts", "ledger",
)  # fmt: skip


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, written once."""
    return sample_root(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutated_file_is_refused_in_words_or_read_as_it_was(sample: Path, kind: str) -> None:
    """Sixteen mutations of each kind: no other error, and no part that was sound is lost."""
    tallies = data_files.run_campaign(16, 0, data=sample, names=[kind])
    assert tallies[kind].failures == []
    assert tallies[kind].files == 16
