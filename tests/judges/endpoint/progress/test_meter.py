"""The progress bar never gets in the way of judging, never stands still, and never lies."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from tqdm import tqdm
from tqdm.std import TqdmDefaultWriteLock  # type: ignore[attr-defined] # not in its stubs

from lmms_eval_captions.judges.endpoint.progress import meter as meters
from lmms_eval_captions.judges.endpoint.progress.meter import Bar, Meter


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
    assert _another_thread_gets(tqdm.get_lock())  # type: ignore[no-untyped-call] # its stubs


def test_without_standard_error_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was started without one has no bar; tqdm's lock stays free for all others."""
    monkeypatch.setattr(sys, "stderr", None)
    bar, meter = Bar(visible=True), Meter(n_submitted=3)
    bar.refresh(meter)
    meter.n_done = 3
    bar.refresh(meter)
    bar.close(meter)
    assert _another_thread_gets(tqdm.get_lock())  # type: ignore[no-untyped-call] # its stubs


def test_the_bar_is_drawn_without_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing done for long: it is drawn on a clock, and shows for how long no reply has come."""
    monkeypatch.setattr(sys, "stderr", shown := io.StringIO())
    now_s = 100.0
    monkeypatch.setattr(meters, "time", SimpleNamespace(monotonic=lambda: now_s))
    bar, meter = Bar(visible=True, idle_s=1.0), Meter(n_submitted=3, n_done=1)
    for _ in range(40):
        bar.refresh(meter)
        meter.silence = "no reply for 42 s, 4 in flight"
        now_s += 0.25
    drawn = shown.getvalue().split("\r")[1:]
    # Once as it is made, and then once a second.
    assert len(drawn) == 1 + 10
    # First of all that is said: a narrow terminal cuts the end off.
    assert "question/s, no reply for 42 s, 4 in flight, calls 0" in drawn[-1]
    meter.silence = ""
    now_s += 1.0
    bar.refresh(meter)
    assert "no reply" not in shown.getvalue().split("\r")[-1]
    bar.close(meter)


@pytest.mark.parametrize("n_done", [1, 2])
def test_the_rate_counts_the_time_of_silence(n_done: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn without progress does not make the next question look fast."""
    monkeypatch.setattr(sys, "stderr", shown := io.StringIO())
    bar, meter = Bar(visible=True, idle_s=0.1), Meter(n_submitted=100)
    began_s = time.monotonic()
    for _ in range(100):
        bar.refresh(meter)
        time.sleep(0.015)
    meter.n_done = n_done
    bar.refresh(meter)
    took_s = time.monotonic() - began_s
    bar.close(meter)
    last = shown.getvalue().split("\r")[-1]
    [(shown_rate, unit)] = re.findall(r"([\d.]+)(s/question|question/s)", last)
    rate = float(shown_rate) if unit == "question/s" else 1.0 / float(shown_rate)
    assert rate == pytest.approx(n_done / took_s, rel=0.3)


def test_what_is_not_done_is_not_shown_as_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar that is closed early stays where it was."""
    monkeypatch.setattr(sys, "stderr", shown := io.StringIO())
    bar, meter = Bar(visible=True), Meter(n_submitted=4)
    bar.refresh(meter)
    meter.n_done = 1
    bar.close(meter)
    last = shown.getvalue().split("\r")[-1]
    assert last.startswith("Judging stopped:  25%")
    assert "1/4" in last
    assert "100%" not in shown.getvalue()


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
