"""Chains go in, answers come out: once each, settled whatever is raised, never mixed up."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chains import request_of, text_of
from conftest import EngineFactory, ServerFactory
from judge_server import Behaviour, JudgeServer, Say
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Chain, Reply, Request
from lmms_eval_captions.judges.errors import JudgeStoppedError


def _request(text: str, *, model: str = "judge", timeout_s: float = 5.0, seed: int = 0) -> Request:
    return Request(
        protocol="test:1",
        model=model,
        messages=[{"role": "user", "content": text}],
        params={"temperature": 0.0, "max_tokens": 8},
        seed=seed,
        timeout_s=timeout_s,
        stand_in=lambda: "",
    )


def _sent(request: Request) -> Chain[Asked[str]]:
    return lambda ask: ask(request, _text)


def _text(reply: Reply) -> str | None:
    return reply.text or None


def _chain(
    text: str,
    *,
    read: Callable[[Reply], str | None] = _text,
    timeout_s: float = 5.0,
    model: str = "judge",
) -> Chain[Asked[str]]:
    async def run(ask: Ask) -> Asked[str]:
        return await ask(_request(text, timeout_s=timeout_s, model=model), read)

    return run


def _ask_all(engine: Engine, n: int, *, timeout_s: float = 5.0) -> list[Asked[str]]:
    chains = [_chain(f"prompt {i}", timeout_s=timeout_s) for i in range(n)]
    return engine.submit(chains).result(timeout=60)


def _only_right_answers(asked: list[Asked[str]], server: JudgeServer) -> None:
    for i, one in enumerate(asked):
        assert one.reason is None
        assert one.value == server.reply(f"prompt {i}")


def test_the_endpoint_is_kept_at_its_limit(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    server = serve(latency_s=0.02)
    _only_right_answers(_ask_all(make_engine(server.url, concurrency=10), 100), server)
    assert server.counts.most_in_flight == 10


def test_identical_requests_are_sent_once(serve: ServerFactory, make_engine: EngineFactory) -> None:
    """Twins in flight share one request, and later ones are answered by the store."""
    server = serve(latency_s=0.05)
    engine = make_engine(server.url)
    twins = engine.submit([_chain("same")] * 20).result()
    assert {one.value for one in twins} == {server.reply("same")}
    assert sum(one.usage.n_calls for one in twins) == 1
    engine.submit([_chain("same")]).result()
    assert server.counts.n_requests == 1
    totals = engine.totals()
    assert (totals.calls, totals.shared + totals.n_from_store) == (1, 20)


def test_a_finished_run_started_again_sends_nothing(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """All verdicts are on disk."""
    server = serve()
    first = _ask_all(make_engine(server.url), 30)
    second = _ask_all(make_engine(server.url), 30)
    assert server.counts.n_requests == 30
    assert [one.value for one in first] == [one.value for one in second]
    assert all(one.cached and one.usage.n_calls == 0 for one in second)


def test_everything_that_moves_a_verdict_is_in_the_key(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Another model, seed, parameter, message or protocol version is asked; another URL is not."""
    server = serve()
    base = _request("a")
    variants = [
        base,
        _request("b"),
        _request("a", model="other"),
        _request("a", seed=1),
        Request("test:2", "judge", base.messages, base.params, 0, 5.0, base.stand_in),
        Request("test:1", "judge", base.messages, {"temperature": 0.5}, 0, 5.0, base.stand_in),
    ]
    engine = make_engine(server.url)
    engine.submit([_sent(request) for request in variants]).result()
    assert server.counts.n_requests == len(variants)
    other = serve()
    make_engine(other.url).submit([lambda ask: ask(base, _text)]).result()
    assert other.counts.n_requests == 0


@pytest.mark.parametrize("fault", ["500", "503", "429", "drop", "cut", "garbage"])
def test_what_can_pass_is_tried_again(
    fault: str, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Failures that pass cost nothing but time: all answers come, each is paid for once."""
    server = serve(faults=(fault,), fault_rate=0.25)
    engine = make_engine(server.url, concurrency=8)
    _only_right_answers(_ask_all(engine, 60), server)
    assert server.counts.n_faults > 5
    assert server.counts.n_answered == 60
    assert engine.meter.retried.total() == server.counts.n_faults


def test_a_reply_that_never_comes_is_given_up_on_and_asked_again(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A request that hangs ends with its time-out and is sent again."""
    server = serve(faults=("hang",), fault_rate=0.3, max_faults=2)
    _only_right_answers(_ask_all(make_engine(server.url), 20, timeout_s=0.3), server)
    assert server.counts.n_faults > 2


@pytest.mark.parametrize("fault", ["nonsense", "empty", "length"])
def test_an_unreadable_reply_is_asked_for_afresh(
    fault: str, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """One readable sample in up to four is enough, and the reading decides which is."""
    server = serve(faults=(fault,), fault_rate=0.4, max_faults=1)

    def read(reply: Reply) -> str | None:
        return reply.text if reply.text.startswith("Answer ") else None

    engine = make_engine(server.url)
    asked = engine.submit([_chain(f"prompt {i}", read=read) for i in range(60)]).result()
    n_scored = sum(one.value is not None for one in asked)
    assert n_scored > 50
    assert all(one.value == server.reply(f"prompt {i}") for i, one in enumerate(asked) if one.value)
    assert server.counts.n_faults > 10
    assert engine.meter.n_calls == server.counts.n_answered == server.counts.n_requests


def test_an_unreadable_judge_leaves_the_question_unscored(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """After three fresh samples there is no value, the last reply, and a reason; nothing is 0."""
    server = serve()
    server.keep_bodies = True
    engine = make_engine(server.url)
    one = engine.submit([_chain("prompt 0", read=lambda _: None)]).result()[0]
    assert one.value is None
    assert one.reason == "unreadable reply, asked 4 times"
    assert one.reply == server.reply("prompt 0")
    assert one.usage.n_calls == 4
    assert [body["seed"] for body in server.bodies] == [0, 1_000_003, 2_000_006, 3_000_009]
    assert [body["temperature"] for body in server.bodies] == [0.0, 0.7, 0.7, 0.7]
    assert engine.meter.n_unscored == 1
    again = make_engine(server.url).submit([_chain("prompt 0", read=lambda _: None)]).result()[0]
    assert again.value is None
    assert server.counts.n_requests == 4


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_cannot_pass_stops_judging_at_once(
    status: int, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Every question is unscored with the server's own words, and hardly any request was sent."""
    server = serve(status=status)
    asked = _ask_all(make_engine(server.url, concurrency=4), 500)
    assert all(one.value is None and f"told to answer {status}" in str(one.reason) for one in asked)
    # A 403 may be one request's own: three in a row stop.
    assert server.counts.n_requests <= (8 if status == 403 else 4)


def test_an_exhausted_quota_is_no_rate_limit(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A 429 that says the quota is used up stops judging: waiting would not help."""
    server = serve(status=429, message="insufficient_quota: check your plan")
    asked = _ask_all(make_engine(server.url, concurrency=4), 50)
    assert all("insufficient_quota" in str(one.reason) for one in asked)
    assert server.counts.n_requests <= 4


def test_a_rate_limit_that_never_ends_is_given_up_on(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Patience with 429 has an end, and the reason says what the server said."""
    server = serve(status=429)
    asked = _ask_all(make_engine(server.url, patience_s=0.3, concurrency=4), 50)
    assert all("told to answer 429" in str(one.reason) for one in asked)


def test_a_model_that_is_missing_does_not_stop_another(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A stop concerns the model that was refused; judges of other benchmarks go on."""
    server = serve(status=404)
    engine = make_engine(server.url)
    assert engine.submit([_chain("a", model="gone")]).result()[0].value is None
    server.behaviour.status = 200
    assert engine.submit([_chain("a", model="gone")]).result()[0].value is None
    assert engine.submit([_chain("a", model="there")]).result()[0].value is not None


def test_a_refused_request_fails_alone(serve: ServerFactory, make_engine: EngineFactory) -> None:
    """A 400 is tried once without optional parameters, and asked again by a later run."""
    server = serve(status=400)
    engine = make_engine(server.url)
    one = engine.submit([_chain("prompt 0")]).result()[0]
    assert one.value is None
    assert "told to answer 400" in str(one.reason)
    assert server.counts.n_requests == 2
    server.behaviour.status = 200
    assert engine.submit([_chain("prompt 1")]).result()[0].value is not None
    assert make_engine(server.url).submit([_chain("prompt 0")]).result()[0].value is not None


def test_a_model_that_refuses_parameters_is_asked_without_them(
    serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """Found out once, said once; a rerun finds the replies under what was to be asked."""
    server = serve(refuses_parameters=True)
    server.keep_bodies = True
    with make_engine(server.url, concurrency=4) as engine:
        _only_right_answers(_ask_all(engine, 40), server)
    assert server.counts.n_requests <= 40 + 2 * 4
    assert all(body["max_completion_tokens"] == 8 for body in server.bodies)
    assert not any("temperature" in body for body in server.bodies)
    said = [line for line in logged if line.startswith("WARNING")]
    assert len(said) == 2
    assert "max_completion_tokens is sent instead" in said[0]
    assert "the model's own temperature is used" in said[1]
    n_before = server.counts.n_requests
    _only_right_answers(_ask_all(make_engine(server.url), 40), server)
    assert server.counts.n_requests == n_before


def test_a_server_that_is_not_there_stops_judging(make_engine: EngineFactory) -> None:
    """An unreachable endpoint ends in a stop that says so, not in an endless loop."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started_s = time.monotonic()
    asked = _ask_all(make_engine(f"http://127.0.0.1:{port}/v1", concurrency=8), 400)
    assert all(one.value is None and "judging stopped" in str(one.reason) for one in asked)
    assert f"127.0.0.1:{port}" in str(asked[-1].reason)
    assert time.monotonic() - started_s < 20


def test_a_replica_that_dies_does_not_end_the_run(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Questions that a dead replica would have answered go to the others."""
    servers = [serve(latency_s=0.01) for _ in range(3)]
    engine = make_engine(*(server.url for server in servers), concurrency=12)
    _ask_all(engine, 60)
    assert all(server.counts.n_answered >= 10 for server in servers)
    servers[0].__exit__()
    asked = engine.submit([_chain(f"later {i}") for i in range(200)]).result(timeout=60)
    assert all(one.reason is None for one in asked)
    servers[0].__exit__ = lambda *_: None  # type: ignore[method-assign] # it has ended


def test_an_outage_that_passes_is_waited_for(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """An endpoint that answered before may be gone for longer than a few attempts take."""
    server = serve(latency_s=0.01)
    engine = make_engine(server.url, concurrency=8, n_attempts=3, outage_patience_s=30.0)
    _ask_all(engine, 20)
    server.behaviour.status = 500
    later = engine.submit([_chain(f"later {i}") for i in range(40)])
    # Three attempts take a tenth of a second.
    time.sleep(1.0)
    assert not later.done()
    # It comes back unsteadily: what failed during the outage does not count against a request.
    server.behaviour = Behaviour(faults=("500",), fault_rate=0.5, max_faults=2)
    assert all(one.reason is None for one in later.result(timeout=60))


def test_a_stop_also_stops_those_that_wait_for_their_turn(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    server = serve(rate=20.0)
    engine = make_engine(server.url, concurrency=64)
    asked = engine.submit([_chain(f"prompt {i}") for i in range(200)])
    while server.counts.n_answered < 30:
        time.sleep(0.01)
    n_before = server.counts.n_requests
    server.behaviour.status = 401
    reasons = [str(one.reason) for one in asked.result(timeout=60) if one.value is None]
    assert len(reasons) > 100
    assert all("told to answer 401" in reason for reason in reasons)
    assert server.counts.n_requests - n_before < 10


def test_a_rate_limit_is_followed_and_recovered_from(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A storm of 429 costs time and no answers, and fewer requests are in flight afterwards."""
    server = serve(rate=100.0, latency_s=0.02)
    engine = make_engine(server.url, concurrency=64)
    _only_right_answers(_ask_all(engine, 200), server)
    assert engine.meter.retried["HTTP 429"] == server.counts.n_rate_limited > 0
    assert server.counts.n_answered == 200


def test_random_trouble_costs_what_it_repeats(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """One request in six fails whatever the rate: all are answered, and the rate is not cut."""
    faults = ("429",) * 10 + ("500",) * 5 + ("empty",) * 2 + ("drop",)
    server = serve(latency_s=0.02, faults=faults, fault_rate=0.18, max_faults=10**9)
    engine = make_engine(server.url, concurrency=64, backoff_s=0.2)
    _only_right_answers(_ask_all(engine, 2000), server)
    assert engine.meter.retried.total() < 600


def test_failures_that_hit_one_and_all_do_not_lose_a_request(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    server = serve(faults=("500",), fault_rate=0.5, max_faults=10**9)
    engine = make_engine(server.url, concurrency=64, n_attempts=7)
    _only_right_answers(_ask_all(engine, 1500), server)


def test_retry_after_is_honoured(serve: ServerFactory, make_engine: EngineFactory) -> None:
    """A request that is told to wait is not sent before."""
    server = serve(faults=("429",), fault_rate=1.0, max_faults=1, retry_after_s=0.4)
    started_s = time.monotonic()
    _only_right_answers(_ask_all(make_engine(server.url), 1), server)
    assert 0.4 <= time.monotonic() - started_s < 3.0


def test_a_full_disk_loses_no_reply(
    tmp_path: Path, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Nothing new is sent, replies that came are shown, and the rest resumes when there is room."""
    server = serve()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
    try:
        asked = _ask_all(make_engine(server.url, concurrency=4), 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    saved = [one for one in asked if one.value is not None]
    failed = [one for one in asked if one.value is None]
    assert 3 < len(saved) < 30
    assert all("LMMS_CAPTIONS_CACHE" in str(one.reason) for one in failed)
    assert server.counts.n_requests == len(saved) + sum(bool(one.reply) for one in failed)
    _only_right_answers(_ask_all(make_engine(server.url), 100), server)
    assert server.counts.n_repeated == sum(bool(one.reply) for one in failed) <= 4


def test_a_disk_that_is_full_for_a_moment_costs_nothing(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A reply that cannot be written is held until it can."""
    server = serve()
    engine = make_engine(server.url, store_patience_s=20.0, concurrency=2)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, hard))
    try:
        future = engine.submit([_chain(f"prompt {i}") for i in range(20)])
        time.sleep(0.5)
        assert not future.done()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    _only_right_answers(future.result(timeout=20), server)
    assert server.counts.n_requests == 20


_SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from test_engine import _chain
engine = Engine(EngineConfig(urls=({url!r},), store=Path({store!r}), concurrency=8))
engine.submit([_chain(f"prompt {{i}}") for i in range(300)]).result()
print("done", engine.meter.n_calls)
engine.close()
"""


def test_a_killed_run_sends_only_what_is_missing(tmp_path: Path, serve: ServerFactory) -> None:
    """After SIGKILL and a new start nothing is asked again but what was in flight."""
    server = serve(latency_s=0.02)
    here = str(Path(__file__).parent)
    script = _SCRIPT.format(tests=here, url=server.url, store=str(tmp_path))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    victim = subprocess.Popen([sys.executable, "-c", script], env=env)
    while server.counts.n_answered < 100:
        time.sleep(0.005)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    n_before = server.counts.n_answered
    assert n_before < 300
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert server.counts.n_repeated <= 8
    assert server.counts.n_answered <= 300 + 8
    assert len(server.counts.answered) == 300
    assert outputs[1] == "done 0\n"


def test_the_key_is_nowhere_but_on_the_wire(
    tmp_path: Path, serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """A server that echoes the key in errors and replies gets it into no reason and no file."""
    key = "sk-very-secret-0123456789"
    server = serve(key=key)
    server.reply = lambda _: f"your key is {key}"
    right = _ask_all(make_engine(server.url, api_key=key), 3)
    assert [one.value for one in right] == ["your key is [key]"] * 3
    wrong = make_engine(server.url, api_key=f"{key}-wrong").submit([_chain("new")]).result()[0]
    assert "401" in str(wrong.reason)
    assert "Incorrect API key provided" in str(wrong.reason)
    texts = [str(wrong), *map(str, right), *logged]
    texts += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in texts if key in text]


def test_a_forked_child_is_told_that_nothing_serves_it(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """The engine's thread stays in the parent: the child gets an error and does not wait."""
    engine = make_engine(serve().url)
    engine.submit([_chain("same")]).result(timeout=5)
    child = os.fork()
    if not child:
        error = engine.submit([_chain("other")]).exception(timeout=5)
        os._exit(0 if isinstance(error, JudgeStoppedError) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for-good"])
@pytest.mark.parametrize(
    "where",
    [
        "_stored.get",
        "_stored.save",
        "_stored.refresh",
        "_asker.ask",
        "_asker._send",
        "_asker._fly",
        "_asker._check",
        "_asker._after_failure",
        "_asker._give_up",
        "_asker._count",
        "_asker._open_client",
        "_asker._pace.take",
        "_asker._concurrency.on_reply",
        "_slots.acquire",
        "_progress.tick",
    ],
)
def test_whatever_is_raised_where_nobody_waits_for_ever(
    where: str,
    lasting: bool,
    serve: ServerFactory,
    make_engine: EngineFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A defect of ours, once or for good, ends in results or errors, and the engine can close."""
    server = serve(latency_s=0.01, faults=("429", "500"), fault_rate=0.3)
    engine = make_engine(server.url, concurrency=4)
    *owners, name = where.split(".")
    owner: Any = engine
    for part in owners:
        owner = getattr(owner, part)
    on = type(owner) if hasattr(type(owner), name) else owner
    real, n_calls = getattr(on, name), 0

    def broken(*arguments: Any, **named: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 3 or (lasting and n_calls > 3):
            raise RuntimeError("a defect")
        return real(*arguments, **named)

    monkeypatch.setattr(on, name, broken)
    futures = [
        engine.submit([_chain(f"prompt {k % 9}") for k in range(i, i + 4)]) for i in range(12)
    ]
    waiting = wait(futures, timeout=10).not_done
    monkeypatch.undo()
    engine.close()
    assert not waiting


@pytest.mark.parametrize("where", ["_send", "save"])
def test_an_error_of_ours_reaches_those_that_wait_for_the_same_request(
    where: str,
    serve: ServerFactory,
    make_engine: EngineFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is raised in one request, its twins are settled with it and nobody hangs."""
    engine = make_engine(serve(latency_s=0.05).url)

    async def fail(*_: object) -> Reply:
        await asyncio.sleep(0.05)
        raise OverflowError("int too large")

    monkeypatch.setattr(engine._asker if where == "_send" else engine._stored, where, fail)
    futures = [engine.submit([_chain("same"), _chain("same")]) for _ in range(3)]
    for future in futures:
        with pytest.raises(OverflowError):
            future.result(timeout=5)
    monkeypatch.undo()
    assert engine.submit([_chain("same")]).result(timeout=5)[0].reason is None


@pytest.mark.parametrize(
    ("text", "finish_reason", "hint"),
    [
        ("nonsense", "stop", ""),
        (" \n", "stop", "; the last one was empty"),
        (
            "{'pred'",
            "length",
            "; the last one was cut at max_tokens: raise LMMS_CAPTIONS_JUDGE_MAX_TOKENS",
        ),
        (
            "<think>So",
            "length",
            "; the last one was cut at max_tokens within its reasoning: raise "
            "LMMS_CAPTIONS_JUDGE_MAX_TOKENS",
        ),
        ("", "content_filter", "; the last one was withheld by the provider's content filter"),
    ],
)
def test_the_reason_says_what_was_the_matter_with_a_reply(
    text: str,
    finish_reason: str,
    hint: str,
    serve: ServerFactory,
    make_engine: EngineFactory,
) -> None:
    """Empty, cut, cut while reasoning and withheld are told apart from what is just unreadable."""
    server = serve()
    server.script = lambda _: Say(text, finish_reason)
    chain = _chain("prompt", read=lambda _: None)
    one = make_engine(server.url).submit([chain]).result(timeout=20)[0]
    assert one.reason == f"unreadable reply, asked 4 times{hint}"
    assert one.reply == text


def test_an_error_of_ours_reaches_the_caller(make_engine: EngineFactory) -> None:
    """An exception in a chain is the caller's to see, and the engine goes on."""

    async def broken(_: Ask) -> Asked[str]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make_engine("http://127.0.0.1:9/v1").submit([broken]).result(timeout=5)


def test_a_reader_that_raises_leaves_its_own_question_unscored(
    serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """A reply that a reader cannot cope with is unreadable; the caption's other questions stand."""

    def raises(_: Reply) -> str | None:
        raise RecursionError("too deep")

    chains = [_chain(f"prompt {n}", read=raises if n == 1 else _text) for n in range(3)]
    asked = make_engine(serve().url).submit(chains).result(timeout=60)
    assert [one.value is None for one in asked] == [False, True, False]
    assert asked[1].reason == "unreadable reply, asked 4 times"
    assert any("reading a reply failed" in line for line in logged)


STRESS_S = 2.0


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_what_would_end_the_thread_is_told_to_the_captions(
    error: type[BaseException],
    serve: ServerFactory,
    make_engine: EngineFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a callback it ends judging with the cause, in a chain it ends that chain's caption."""

    async def raises(_: Ask) -> Asked[str]:
        raise error("in a chain")

    engine = make_engine(serve(latency_s=1.0).url)
    lost = engine.submit([raises]).exception(timeout=5)
    assert isinstance(lost, JudgeStoppedError)
    assert "in a chain" in str(lost)

    def draw() -> None:
        raise error("in a callback")

    other = engine.submit([_chain("prompt")])
    monkeypatch.setattr(engine._progress, "tick", draw)
    assert "in a callback" in str(other.exception(timeout=5))
    engine._thread.join(5)
    assert "in a callback" in str(engine.submit([_chain("later")]).exception(timeout=5))
    engine.close()


def test_submitting_beside_closing_for_seconds_leaves_nothing_open(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Many threads hand captions in while engine after engine is closed: all of them end."""
    server = serve()
    engines: list[Engine] = [make_engine(server.url, concurrency=8)]
    futures: list[Future[list[Asked[str]]]] = []
    ended = threading.Event()

    def submit(number: int) -> None:
        index = 0
        while not ended.is_set():
            futures.append(engines[-1].submit([_chain(f"{number} {index % 5}")]))
            index += 1
            time.sleep(0)

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    deadline_s = time.monotonic() + STRESS_S
    while time.monotonic() < deadline_s:
        closing = engines[-1]
        time.sleep(0.03)
        closing.close()
        engines.append(make_engine(server.url, concurrency=8))
    ended.set()
    for thread in threads:
        thread.join()
    engines[-1].close()
    assert len(futures) > 1000
    assert not wait(futures, timeout=10).not_done
    errors = [error for future in futures if (error := future.exception()) is not None]
    assert all(isinstance(error, JudgeStoppedError) for error in errors)
    assert len(errors) < len(futures)
    with pytest.raises(JudgeStoppedError, match="judging was ended"):
        engines[-1].submit([_chain("late")]).result(timeout=5)


async def _ask(ask: Ask, *, text: str, until_s: float | None = None) -> Asked[str]:
    return await ask(replace(request_of(text), until_s=until_s), text_of)


def test_what_waits_for_a_slot_is_dropped(serve: ServerFactory, make_engine: EngineFactory) -> None:
    """The next one goes out in its place, and nothing is stopped."""
    server = serve(latency_s=0.3)
    engine = make_engine(server.url, concurrency=1)
    first = engine.submit([partial(_ask, text="a")])
    late = engine.submit([partial(_ask, text="b", until_s=time.monotonic() + 0.1)])
    last = engine.submit([partial(_ask, text="c")])
    (asked,) = late.result(10)
    assert (asked.value, asked.reason) == (None, "the time for it was over")
    assert asked.failure == "unavailable"
    assert first.result(10)[0].value is not None
    assert last.result(10)[0].value is not None
    assert server.counts.n_requests == 2
    assert engine.stopped("judge", "") is None


def test_what_is_stored_is_never_too_late(serve: ServerFactory, make_engine: EngineFactory) -> None:
    """It need not be sent."""
    server = serve()
    engine = make_engine(server.url)
    (known,) = engine.submit([partial(_ask, text="a")]).result(10)
    (again,) = engine.submit([partial(_ask, text="a", until_s=0.0)]).result(10)
    assert again.value == known.value is not None
    assert server.counts.n_requests == 1


def test_the_time_is_in_no_key() -> None:
    """Two requests that differ in it alone are one."""
    request = request_of("a")
    timed = replace(request, until_s=1.0)
    assert timed == request
    assert timed.key(0) == request.key(0)
