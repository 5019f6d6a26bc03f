"""What tests of pages share."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_captions.lmms_eval_tasks.sample import sample_root


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in sample, rendered once."""
    return sample_root(tmp_path_factory.mktemp("sample"))


@pytest.fixture
def offline(bench: pytest.MonkeyPatch, sample: Path) -> pytest.MonkeyPatch:
    """The sample's data and the offline judge, in two runs."""
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample))
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "2")
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")
    return bench
