"""The progress line is one line, never gets in the way of judging, stands still or lies."""

from __future__ import annotations

import io
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
from lmms_eval_captions.judges.endpoint.progress.bar import Bar
from lmms_eval_captions.judges.endpoint.progress.meter import Meter
from terminals import PseudoTerminal, TextTerminal, pseudo_terminal

MODEL = "gpt-4o-2024-08-06"


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
