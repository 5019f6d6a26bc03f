"""What a run shows while its endpoint is in trouble, and when it is ended."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from chains import chain
from conftest import EngineFactory, ServerFactory
from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.judges.endpoint.progress import trouble
from terminals import TextTerminal


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minutes that take half a second."""
    monkeypatch.setattr(trouble, "_EVERY_S", 0.5)
    monkeypatch.setattr(trouble, "_SHOWN_S", 0.2)
    monkeypatch.setattr(trouble, "_CALM_S", 0.3)


def _wait_for(condition: Callable[[], object], what: str, timeout_s: float = 20.0) -> None:
    until_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until_s, what
        time.sleep(0.02)


@pytest.mark.usefixtures("fast")
def test_a_killed_server_is_told_of_and_so_is_its_return(
    make_engine: EngineFactory, logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bar moves and counts the silence, a line says what is waited for, one that it is back."""
    monkeypatch.setattr(sys, "stderr", shown := TextTerminal())
    server = JudgeServer(Behaviour(latency_s=0.05)).__enter__()
    engine = make_engine(server.url, concurrency=4, outage_patience_s=60.0, progress=True)
    future = engine.submit([chain(f"prompt {i}") for i in range(200)])
    _wait_for(lambda: engine.meter.n_calls > 20, "the first replies")
    server.__exit__()
    _wait_for(lambda: "trouble since" in "".join(logged), "lines on the outage")
    first = next(line for line in logged if "endpoint trouble, not connected for the" in line)
    assert re.search(r"waited for until \d\d:\d\d:\d\d at least, ", first)
    assert re.search(r"trouble since .* \d+ x not connected.*, no reply for ", "".join(logged))
    _wait_for(lambda: "no reply for 1 s, " in shown.getvalue(), "the bar to tell of the silence")
    n_drawn = shown.getvalue().count("\r")
    _wait_for(lambda: shown.getvalue().count("\r") >= n_drawn + 2, "the bar to be drawn", 6.0)

    with JudgeServer(Behaviour(), port=server.port):
        assert all(one.reason is None for one in future.result(timeout=60))
        _wait_for(lambda: "trouble is over" in "".join(logged), "the end of trouble")
        _wait_for(lambda: "200/200" in shown.getvalue(), "the bar to be full")
    assert sum("trouble is over" in line for line in logged) == 1


@pytest.mark.usefixtures("fast")
def test_a_server_that_says_nothing_is_told_of(
    serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """Requests that hang are no failure yet: how many, and until when they may, is logged."""
    server = serve()
    server.script = lambda _: "hang"
    engine = make_engine(server.url)
    engine.submit([chain(f"prompt {i}", timeout_s=60.0) for i in range(3)])
    _wait_for(lambda: logged, "a line on the silence")
    assert re.fullmatch(
        r"WARNING no reply for \d s and no failure, 3 in flight\. The first of them has until "
        r"\d\d:\d\d:\d\d, then it is asked again\n",
        logged[0],
    )


def test_every_kind_of_failure_has_a_line_of_its_own(
    serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """Time-outs, dropped connections, each status and what is no completion are told apart."""
    server = serve()
    faults = iter(["500", "503", "429", "hang", "drop", "cut", "garbage"])
    server.script = lambda _: next(faults, None)
    engine = make_engine(server.url, n_attempts=20, backoff_s=0.001)
    [one] = engine.submit([chain("a", timeout_s=0.3)]).result(timeout=60)
    assert one.reason is None
    kinds = [re.findall(r"endpoint trouble, (.*) for the first", line) for line in logged]
    assert [kind for found in kinds for kind in found] == [
        "HTTP 500", "HTTP 503", "HTTP 429", "time-out", "connection broken off",
        "no chat completion",
    ]  # fmt: skip


def test_an_end_of_judging_is_logged_when_it_comes(
    serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """A wrong key stands in the log at once and once, not at the end of the run alone."""
    server = serve(status=401)
    make_engine(server.url).submit([chain(f"prompt {i}") for i in range(20)]).result(timeout=60)
    [line] = [line for line in logged if "nothing more is asked of judge: " in line]
    assert "answered 401: told to answer 401 (check OPENAI_API_KEY); what was answered" in line


def test_ended_judging_does_not_show_what_it_cancelled_as_done(
    serve: ServerFactory, make_engine: EngineFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C the bar stays where it was: some were answered, others were under way."""
    monkeypatch.setattr(sys, "stderr", shown := TextTerminal())
    server = serve()
    server.script = lambda payload: "hang" if "hang" in str(payload["messages"]) else None
    engine = make_engine(server.url, concurrency=8, progress=True)
    chains = [chain(f"prompt {i}") for i in range(30)]
    future: Future[Any] = engine.submit([*chains, *(chain(f"hang {i}") for i in range(70))])
    _wait_for(lambda: engine.meter.n_done == 30, "those that are answered")
    _wait_for(lambda: "30/100" in shown.getvalue(), "the bar")
    engine.close()
    assert future.exception() is not None
    assert engine.meter.n_done == 30
    last = shown.getvalue().split("\r")[-1]
    assert last.startswith("Judging stopped:  30%")
    assert "30/100" in last
    assert "100%" not in shown.getvalue()


_INTERRUPTED = """
import atexit, signal, sys, time
from pathlib import Path
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.config import EngineConfig
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


def test_a_process_that_is_interrupted_leaves_its_bar_where_it_was(
    serve: ServerFactory, tmp_path: Path
) -> None:
    """Ctrl-C, as a user presses it."""
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
