"""What the tests of ``stability`` share."""

from __future__ import annotations

import pytest

from lmms_eval_captions.judges.settings import DataSettings, read_data_settings
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root


@pytest.fixture(scope="package")
def settings(tmp_path_factory: pytest.TempPathFactory) -> DataSettings:
    """The official files of the built-in sample."""
    root = sample_root(tmp_path_factory.mktemp("sample"))
    cache = str(root.parent)
    return read_data_settings({"LMMS_CAPTIONS_DATA": str(root), "LMMS_CAPTIONS_CACHE": cache})
