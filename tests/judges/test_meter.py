"""The progress bar never gets in the way of judging."""

from __future__ import annotations

import io
import sys
import threading

import pytest
from tqdm import tqdm
from tqdm.std import TqdmDefaultWriteLock

from lmms_eval_captions.judges.meter import Bar, Meter


class _FullDisk(io.StringIO):
    n_writes = 0

    def write(self, _text: str) -> int:
        self.n_writes += 1
        raise OSError(28, "No space left on device")


def test_a_full_disk_below_standard_error_is_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log on a full disk costs its bar; tqdm's lock stays free for all others."""
    full = _FullDisk()
    monkeypatch.setattr(sys, "stderr", full)
    bar, meter = Bar(visible=True), Meter(n_submitted=3)
    bar.refresh(meter)
    meter.n_done = 3
    bar.refresh(meter)
    assert full.n_writes > 0
    assert _another_thread_gets(tqdm.get_lock())


def _another_thread_gets(lock: TqdmDefaultWriteLock) -> bool:
    """Whether a bar of another thread could be drawn."""
    got: list[bool] = []

    def acquire() -> None:
        # An RLock below: whoever holds it would get it again.
        got.append(all(part.acquire(timeout=5.0) for part in lock.locks))
        for part in lock.locks if got[0] else ():
            part.release()

    thread = threading.Thread(target=acquire)
    thread.start()
    thread.join()
    return got[0]
