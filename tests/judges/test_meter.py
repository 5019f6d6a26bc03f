"""The progress bar never gets in the way of judging."""

from __future__ import annotations

import io
import sys

import pytest

from lmms_eval_captions.judges.meter import Bar, Meter


class _FullDisk(io.StringIO):
    n_writes = 0

    def write(self, _text: str) -> int:
        self.n_writes += 1
        raise OSError(28, "No space left on device")


def test_a_full_disk_below_standard_error_is_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log on a full disk costs its bar, nothing else."""
    full = _FullDisk()
    monkeypatch.setattr(sys, "stderr", full)
    bar, meter = Bar(visible=True), Meter(n_submitted=3)
    bar.refresh(meter)
    meter.n_done = 3
    bar.refresh(meter)
    assert full.n_writes > 0
