"""The progress line and what is logged of an endpoint in trouble."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pytest
from loguru import logger
from tqdm import tqdm

from chains import chain
from conftest import EngineFactory, ServerFactory
from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.judges.endpoint import progress as progress_module
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.progress import Meter, Progress
from terminals import PseudoTerminal, TextTerminal, pseudo_terminal

MODEL = "gpt-4o-2024-08-06"


def _progress(meter: Meter) -> Progress:
    config = EngineConfig(urls=("http://127.0.0.1/v1",), store=Path(), progress=True)
    return Progress(config, meter, lambda: 64)


def _busy() -> Meter:
    meter = Meter(n_submitted=96_825, n_done=24_300, n_unscored=3, n_calls=48_112, n_asking=64)
    meter.from_store["http://127.0.0.1/v1"] = 1_200
    meter.retried["HTTP 429"], meter.retried["time-out"] = 7, 24
    meter.tokens[MODEL] = [12_345_678, 2_345_678]
    return meter


class _Clock:
    """A clock that is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = time.monotonic()
        module = SimpleNamespace(monotonic=lambda: self.now_s)
        monkeypatch.setattr(progress_module, "time", module)

    def run(self, progress: Progress, seconds: int) -> None:
        for _ in range(seconds):
            progress.tick()
            self.now_s += 1.0


def _drawn_on(terminal: PseudoTerminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    # Bars that other tests have left would stand above this one.
    monkeypatch.setattr(tqdm, "_instances", WeakSet())


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_bar_is_one_line_of_any_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with pseudo_terminal(width) as terminal:
        _drawn_on(terminal, monkeypatch)
        progress = _progress(_busy())
        _Clock(monkeypatch).run(progress, 42)
        [row] = terminal.take_in().rows
        progress.close()
    assert row.startswith("Judging:  25%, $54.32, 24,300/96,825, no reply for 41 s")
    assert len(row.rstrip()) < width
    assert ("48,112 calls" in row) == (width > 80)
    assert ("tokens 12,345,678+2,345,678" in row) == (width == 200)


def test_log_lines_begin_on_a_line_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logger's other patcher, such as the one that hides tokens, is called as before."""
    patched: list[object] = []
    logger.configure(patcher=patched.append)
    with pseudo_terminal(80) as terminal:
        _drawn_on(terminal, monkeypatch)
        sink = logger.add(terminal.stream, format="{message}")
        try:
            clock, progress = _Clock(monkeypatch), _progress(_busy())
            clock.run(progress, 3)
            terminal.take_in()
            logger.info("a line of lmms-eval's")
            clock.run(progress, 3)
            rows = [row.rstrip() for row in terminal.take_in().rows]
            progress.close()
        finally:
            logger.remove(sink)
            logger.configure(patcher=lambda _: None)
    assert len(patched) == 1
    assert rows[0] == "a line of lmms-eval's"
    assert rows[1].startswith("Judging:  25%")
    assert len(rows) == 2


def test_without_a_terminal_a_line_is_written_every_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", shown := io.StringIO())
    clock, meter = _Clock(monkeypatch), Meter(n_submitted=600)
    progress = _progress(meter)
    for _ in range(150):
        clock.run(progress, 1)
        meter.n_done += 4
    progress.tick()
    lines = shown.getvalue().splitlines()
    starts = [line.split(", ")[0] for line in lines]
    assert starts == ["Judging:  33%", "Judging:  66%", "Judging: 100%"]
    assert lines[0] == "Judging:  33%, 200/600, 00:50<01:40, 4 questions/s"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_standard_error_that_was_closed_does_not_matter(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = TextTerminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", closed)
    clock, meter = _Clock(monkeypatch), Meter(n_submitted=3)
    progress = _progress(meter)
    clock.run(progress, 1)
    closed.close()
    meter.n_done = 1
    clock.run(progress, 60)
    progress.close()


def _wait_for(condition: Callable[[], object], what: str, timeout_s: float = 20.0) -> None:
    until_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until_s, what
        time.sleep(0.02)


def test_an_outage_and_its_end_are_shown(
    make_engine: EngineFactory, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bar counts the silence, a line a minute counts the failures, one says that it is over."""
    monkeypatch.setattr(progress_module, "_TROUBLE_S", 0.5)
    monkeypatch.setattr(progress_module, "_SILENCE_S", 0.2)
    monkeypatch.setattr(sys, "stderr", shown := TextTerminal())
    server = JudgeServer(Behaviour(latency_s=0.05)).__enter__()
    engine = make_engine(server.url, concurrency=4, outage_patience_s=60.0, progress=True)
    future = engine.submit([chain(f"prompt {i}") for i in range(200)])
    _wait_for(lambda: engine.meter.n_calls > 20, "the first replies")
    server.__exit__()
    pattern = r"endpoint trouble: \d+ x not connected.*, no reply for \d+ s, \d in flight"
    _wait_for(lambda: re.search(pattern, "".join(logged)), "a line on the outage")
    assert any("endpoint trouble, first not connected: " in line for line in logged)
    _wait_for(lambda: "no reply for 1 s, " in shown.getvalue(), "the silence in the bar")
    with JudgeServer(Behaviour(), port=server.port):
        assert all(one.reason is None for one in future.result(timeout=60))
        _wait_for(lambda: "replies again after" in "".join(logged), "the end of trouble")
        _wait_for(lambda: "200/200" in shown.getvalue(), "the bar to be full")


def test_every_kind_of_failure_is_logged_once(
    serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    server = serve()
    faults = iter(["500", "503", "429", "hang", "drop", "cut", "garbage"])
    server.script = lambda _: next(faults, None)
    engine = make_engine(server.url, n_attempts=20, backoff_s=0.001)
    [one] = engine.submit([chain("a", timeout_s=0.3)]).result(timeout=60)
    assert one.reason is None
    kinds = [re.findall(r"endpoint trouble, first ([^:]*): ", line) for line in logged]
    assert [kind for found in kinds for kind in found] == [
        "HTTP 500", "HTTP 503", "HTTP 429", "time-out", "connection broken off",
        "no chat completion",
    ]  # fmt: skip


def test_an_end_of_judging_is_logged_at_once_and_once(
    serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    server = serve(status=401)
    make_engine(server.url).submit([chain(f"prompt {i}") for i in range(20)]).result(timeout=60)
    [line] = [line for line in logged if "nothing more is asked of judge: " in line]
    assert "answered 401: told to answer 401 (check OPENAI_API_KEY); what was answered" in line


def test_questions_that_are_cancelled_are_not_shown_as_done(
    serve: ServerFactory, make_engine: EngineFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", shown := TextTerminal())
    server = serve()
    server.script = lambda payload: "hang" if "hang" in str(payload["messages"]) else None
    engine = make_engine(server.url, concurrency=8, progress=True)
    chains = [chain(f"prompt {i}") for i in range(30)]
    future: Future[Any] = engine.submit([*chains, *(chain(f"hang {i}") for i in range(70))])
    _wait_for(lambda: "30/100" in shown.getvalue(), "the bar")
    engine.close()
    assert future.exception() is not None
    last = shown.getvalue().split("\r")[-1]
    assert last.startswith("Judging stopped:  30%, 30/100")
    assert "100%" not in shown.getvalue()


_INTERRUPTED = """
import atexit, signal, sys, time
from pathlib import Path
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.request import Request

async def chain(ask, number):
    text = [{"role": "user", "content": f"{'prompt' if number < 3 else 'hang'} {number}"}]
    request = Request("test:1", "judge", text, {}, seed=0, timeout_s=60.0, stand_in=str)
    return await ask(request, lambda reply: reply.text)

# A shell's background jobs ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
engine = Engine(EngineConfig(urls=(sys.argv[1],), store=Path(sys.argv[2]), progress=True))
atexit.register(engine.close)
engine.submit([lambda ask, n=n: chain(ask, n) for n in range(10)])
while engine.meter.n_done < 3:
    time.sleep(0.01)
time.sleep(1.0)
print("ready", flush=True)
time.sleep(60.0)
"""


def test_an_interrupted_process_leaves_its_bar_as_it_is(
    serve: ServerFactory, tmp_path: Path
) -> None:
    server = serve()
    server.script = lambda payload: "hang" if "hang" in str(payload["messages"]) else None
    command = [sys.executable, "-c", _INTERRUPTED, server.url, str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=30)
    assert "Judging stopped:  30%" in shown
    assert "3/10" in shown
    assert "100%" not in shown
    assert "KeyboardInterrupt" in shown
