"""The progress line is one line, never gets in the way of judging, stands still or lies."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
from types import SimpleNamespace
from weakref import WeakSet

import pytest
from loguru import logger
from tqdm import tqdm
from tqdm.std import TqdmDefaultWriteLock  # type: ignore[attr-defined] # not in its stubs

from lmms_eval_captions.judges.endpoint.progress import bar as bars
from lmms_eval_captions.judges.endpoint.progress.bar import Bar, counts_of
from lmms_eval_captions.judges.endpoint.progress.meter import Meter
from terminals import PseudoTerminal, TextTerminal, pseudo_terminal

MODEL = "gpt-4o-2024-08-06"


class _FullDisk(TextTerminal):
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


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_standard_error_that_was_closed_is_no_matter(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service may close it while judging goes on: nothing is raised, nothing is shown."""
    closed = TextTerminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", closed)
    monkeypatch.setattr(bars, "_LINE_S", 0.0)
    monkeypatch.setattr(bars, "_LIVELY_S", 0.0)
    bar, meter = Bar(visible=True), Meter(n_submitted=3)
    bar.refresh(meter)
    closed.close()
    meter.n_done = 1
    bar.refresh(meter)
    bar.close(meter)
    assert _another_thread_gets(tqdm.get_lock())  # type: ignore[no-untyped-call] # its stubs


def test_a_terminal_without_a_size_shows_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some containers have one of 0 x 0: the line is as wide as usual, not one letter or none."""
    with pseudo_terminal(0) as terminal:
        monkeypatch.setattr(sys, "stderr", terminal.stream)
        bar, meter = Bar(visible=True), Meter(n_submitted=4, n_done=1)
        bar.refresh(meter)
        assert terminal.take_in().rows == ["Judging:  25%, 1/4, 00:00"]
        bar.close(meter)


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
    monkeypatch.setattr(sys, "stderr", shown := TextTerminal())
    now_s = 100.0
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: now_s))
    bar, meter = Bar(visible=True, idle_s=1.0), Meter(n_submitted=3, n_done=1)
    for _ in range(40):
        bar.refresh(meter)
        meter.silence = "no reply for 42 s, 4 in flight"
        now_s += 0.25
    drawn = shown.getvalue().split("\r")[1:]
    # Once as it is made, and then once a second.
    assert len(drawn) == 1 + 9
    # Among the first that is said: a narrow terminal cuts the end off.
    assert drawn[-1].startswith("Judging:  33%, 1/3, no reply for 42 s, 4 in flight, 00:09")
    meter.silence = ""
    now_s += 1.0
    bar.refresh(meter)
    assert "no reply" not in shown.getvalue().split("\r")[-1]
    bar.close(meter)


@pytest.mark.parametrize("n_done", [1, 2])
def test_the_rate_counts_the_time_of_silence(n_done: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn without progress does not make the next question look fast."""
    monkeypatch.setattr(sys, "stderr", shown := TextTerminal())
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
    [(shown_rate, unit)] = re.findall(r"([\d.]+) (s/question|questions/s)", last)
    rate = float(shown_rate) if unit == "questions/s" else 1.0 / float(shown_rate)
    assert rate == pytest.approx(n_done / took_s, rel=0.3)


def test_what_is_not_done_is_not_shown_as_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar that is closed early stays where it was."""
    monkeypatch.setattr(sys, "stderr", shown := TextTerminal())
    bar, meter = Bar(visible=True), Meter(n_submitted=4)
    bar.refresh(meter)
    meter.n_done = 1
    bar.close(meter)
    last = shown.getvalue().split("\r")[-1]
    assert last.startswith("Judging stopped:  25%")
    assert "1/4" in last
    assert "100%" not in shown.getvalue()


def _busy() -> Meter:
    """A run in full swing, with something to say of everything."""
    meter = Meter(
        n_submitted=96_825, n_done=24_300, n_unscored=3, n_calls=48_112, n_cached=1_200,
        n_retried=31, n_rate_limited=7, silence="no reply for 42 s, 64 in flight",
    )  # fmt: skip
    meter.tokens[MODEL] = [12_345_678, 2_345_678]
    return meter


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_bar_is_one_line_of_any_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn over and over, it stays on its row, its dollars in sight."""
    with pseudo_terminal(width) as terminal:
        bar = _draw(terminal, _busy(), monkeypatch, times=20)
        [row] = terminal.take_in().rows
        bar.close(_busy())
    assert row.startswith("Judging:  25%, $54.32, 24,300/96,825, no reply for 42 s")
    assert len(row.rstrip()) < width
    assert ("48,112 calls" in row) == (width > 80)
    assert ("tokens 12,345,678+2,345,678" in row) == (width == 200)


@pytest.mark.parametrize("widths", [(200, 80), (80, 200)], ids=["narrower", "wider"])
def test_the_bar_takes_the_width_of_a_resized_terminal(
    widths: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the next drawing on it fits, and uses what there is."""
    with pseudo_terminal(widths[0]) as terminal:
        bar = _draw(terminal, _busy(), monkeypatch, times=3)
        terminal.resize(widths[1])
        terminal.screen.rows[:] = [""]
        _draw(terminal, _busy(), monkeypatch, times=3, bar=bar)
        [row] = terminal.take_in().rows
        bar.close(_busy())
    assert len(row.rstrip()) < widths[1]
    assert ("tokens" in row) == (widths[1] == 200)


def test_zeros_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was answered yet: only how far it is, and since when."""
    with pseudo_terminal(120) as terminal:
        bar = _draw(terminal, Meter(n_submitted=3), monkeypatch, times=2)
        [row] = terminal.take_in().rows
        bar.close(Meter())
    assert row.rstrip() == "Judging:   0%, 0/3, 00:01"


def test_the_share_of_the_cache_is_shown_where_there_is_one() -> None:
    """Of the tokens of the prompts, all models together; nothing where nothing was cached."""
    meter = Meter()
    meter.count_call("a", 600, 10)
    assert counts_of(meter) == ["1 calls", "tokens 600+10"]
    meter.count_call("b", 400, 10, cached_tokens=250)
    assert counts_of(meter) == ["2 calls", "tokens 1,000+20", "25% of the prompts cached"]


def test_log_lines_begin_on_a_line_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar makes room for what is logged, by anybody, and stands again below it."""
    with pseudo_terminal(80) as terminal:
        sink = logger.add(terminal.stream, format="{message}")
        try:
            bar = _draw(terminal, _busy(), monkeypatch, times=3)
            terminal.take_in()
            logger.info("a word of lmms-eval's")
            logger.info("and another")
            _draw(terminal, _busy(), monkeypatch, times=3, bar=bar)
            rows = [row.rstrip() for row in terminal.take_in().rows]
            bar.close(_busy())
            logger.info("the last")
            rows_at_the_end = [row.rstrip() for row in terminal.take_in().rows]
        finally:
            logger.remove(sink)
    assert rows[:2] == ["a word of lmms-eval's", "and another"]
    assert rows[2].startswith("Judging:  25%")
    assert len(rows) == 3
    assert rows_at_the_end[2].startswith("Judging stopped:  25%")
    assert rows_at_the_end[3:] == ["the last", ""]


def test_without_a_terminal_no_minute_is_without_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log is not filled with drawings; what was told of is told to its end."""
    monkeypatch.setattr(sys, "stderr", shown := io.StringIO())
    now_s = 100.0
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: now_s))
    bar, meter = Bar(visible=True), Meter(n_submitted=1_000)
    for _ in range(4 * 150):
        bar.refresh(meter)
        now_s += 0.25
        meter.n_done += 1
    meter.n_done = 1_000
    bar.refresh(meter)
    lines = shown.getvalue().splitlines()
    assert [line.split(", ")[0] for line in lines] == [
        "Judging:  20%", "Judging:  40%", "Judging: 100%",
    ]  # fmt: skip
    assert lines[0] == "Judging:  20%, 200/1,000, 00:50<03:20, 4 questions/s"


@pytest.mark.parametrize("n_done", [2, 3])
def test_short_judging_without_a_terminal_says_only_that_it_was_stopped(
    n_done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rerun from the store takes no line of a log."""
    monkeypatch.setattr(sys, "stderr", shown := io.StringIO())
    bar, meter = Bar(visible=True), Meter(n_submitted=3)
    bar.refresh(meter)
    meter.n_done = n_done
    bar.close(meter)
    is_stopped = shown.getvalue().startswith("Judging stopped:  66%, 2/3")
    assert is_stopped == (n_done == 2)
    assert is_stopped or not shown.getvalue()


def _draw(
    terminal: PseudoTerminal,
    meter: Meter,
    monkeypatch: pytest.MonkeyPatch,
    *,
    times: int,
    bar: Bar | None = None,
) -> Bar:
    """Have a bar drawn so often, a second after the other."""
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    if bar is None:
        # Bars that other tests have left standing would stand above this one.
        monkeypatch.setattr(tqdm, "_instances", WeakSet())
    now_s = time.monotonic() + (1000.0 if bar else 0.0)
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: now_s))
    bar = bar or Bar(visible=True)
    for _ in range(times):
        bar.refresh(meter)
        now_s += 1.0
    return bar


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
