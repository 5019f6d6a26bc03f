"""Which request is next, to which server it goes, and whose reply is whose."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import wait
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chains import chain, request_of, text_of
from conftest import EngineFactory, ServerFactory
from judge_server import Say, last_text
from lmms_eval_captions.judges.endpoint.client import Replicas
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Chain, Reply, Request
from lmms_eval_captions.judges.endpoint.store import StoredReplies
from lmms_eval_captions.judges.errors import JudgeStoppedError

N_GATHERED = 10
N_QUESTIONS = 20


async def _fan_out(
    index: int, ask: Ask, *, n: int = N_GATHERED, timeout_s: float = 5.0
) -> list[str | None]:
    """A question that gathers requests, and then asks one more about their replies."""
    requests = [request_of(f"{index} {k:02}", timeout_s=timeout_s) for k in range(n)]
    first = await asyncio.gather(*(ask(request, text_of) for request in requests))
    last: Asked[str] = await ask(request_of(f"{index} last", timeout_s=timeout_s), text_of)
    return [*(asked.reason for asked in first), last.reason]


def _wait_for(condition: Callable[[], object], timeout_s: float = 20.0) -> None:
    until_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.01)


def _is_idle(engine: Engine) -> bool:
    slots = engine._slots
    return not (
        slots.n_held
        or any(not granted.done() for *_, granted in slots._waiting)
        or any(not task.done() for task in engine._chains)
    )


FAULTS: dict[str, dict[str, Any]] = {
    "none": {},
    "429": {"faults": ("429",), "fault_rate": 0.3},
    "500": {"faults": ("500", "503", "garbage", "cut"), "fault_rate": 0.3},
    "dropped": {"faults": ("drop",), "fault_rate": 0.3},
    "timed out": {"faults": ("hang",), "fault_rate": 0.05, "max_faults": 1},
    "stragglers": {"tail": 0.05, "tail_factor": 20.0},
    "unreadable": {"faults": ("empty",), "fault_rate": 0.02, "max_faults": 1},
    "all": {
        "faults": ("429", "500", "drop", "hang", "empty"),
        "fault_rate": 0.1,
        "max_faults": 1,
        "tail": 0.02,
    },
}


@pytest.mark.parametrize("concurrency", [4])
@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
def test_requests_that_a_protocol_gathers_keep_to_the_limit(
    faults: dict[str, Any], concurrency: int, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """The server never has more of them than may be in flight, and as many where all is well."""
    server = serve(latency_s=0.005, **faults)
    engine = make_engine(server.url, concurrency=concurrency, n_attempts=30)
    chains = [partial(_fan_out, index, timeout_s=0.5) for index in range(N_QUESTIONS)]
    reasons = engine.submit(chains).result(timeout=120)
    assert reasons == [[None] * (N_GATHERED + 1)] * N_QUESTIONS
    assert server.counts.most_open <= concurrency
    assert faults or server.counts.most_open == concurrency
    assert server.counts.n_answered >= N_QUESTIONS * (N_GATHERED + 1)
    _wait_for(partial(_is_idle, engine))


def test_slots_are_counted_right_after_all_that_went_wrong(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """None is lost and none is there twice, whatever chains were cancelled and whatever raised."""
    server = serve(latency_s=0.01, faults=("429", "500", "drop"), fault_rate=0.2)
    engine = make_engine(server.url, concurrency=4)

    async def broken(index: int, ask: Ask) -> list[str | None]:
        async def raises() -> Asked[str]:
            await ask(request_of(f"{index} before"), text_of)
            raise ZeroDivisionError

        others = (ask(request_of(f"{index} {k}"), text_of) for k in range(N_GATHERED))
        await asyncio.gather(raises(), *others)
        return []

    async def cancelled(index: int, ask: Ask) -> list[str | None]:
        await asyncio.wait_for(_fan_out(index, ask), 0.015)
        return []

    bad = [engine.submit([partial(broken, index)]) for index in range(100, 110)]
    slow = [engine.submit([partial(cancelled, index)]) for index in range(200, 210)]
    good = [engine.submit([partial(_fan_out, index)]) for index in range(10)]
    assert all(isinstance(future.exception(60), ZeroDivisionError) for future in bad)
    assert all(isinstance(future.exception(60), asyncio.TimeoutError) for future in slow)
    assert all(future.result(60) == [[None] * (N_GATHERED + 1)] for future in good)
    _wait_for(partial(_is_idle, engine))
    assert engine.defect is None
    server.behaviour.faults = ()
    server.counts.most_open = 0
    later = engine.submit([chain(f"later {index}") for index in range(40)]).result(timeout=60)
    assert all(asked.reason is None for asked in later)
    assert 1 <= server.counts.most_open <= 4


@pytest.mark.parametrize("what", ["on the wire", "backing off", "held back by the rate"])
def test_closing_leaves_no_slot_and_no_task(
    what: str, serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """Every gathered request ends with the engine, whatever it waits for."""
    server = serve(latency_s=30.0)
    if what != "on the wire":
        server.behaviour.status = 429
    engine = make_engine(server.url, concurrency=4, max_backoff_s=30.0, backoff_s=30.0)
    if what == "held back by the rate":
        engine._asker._pace.rate = 1e-6
    futures = [engine.submit([partial(_fan_out, index)]) for index in range(5)]
    if what == "held back by the rate":
        _wait_for(lambda: engine._slots._waiting and not engine._slots.n_held)
    else:
        _wait_for(lambda: server.counts.n_requests >= 4)
    engine.close()
    assert not wait(futures, timeout=5).not_done
    assert all(isinstance(future.exception(), JudgeStoppedError) for future in futures)
    assert _is_idle(engine)
    assert not any("destroyed" in line for line in logged)


def _order(server: Any) -> list[str]:
    return [last_text(body) for body in server.bodies]


def test_requests_go_out_in_the_order_of_their_questions(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    server = serve()
    server.keep_bodies = True
    engine = make_engine(server.url, concurrency=1)
    futures = [
        engine.submit([partial(_fan_out, 10 * caption + q) for q in range(5)])
        for caption in range(1, 4)
    ]
    assert all(reason is None for f in futures for reasons in f.result(60) for reason in reasons)
    gathered = [text for text in _order(server) if "last" not in text]
    assert gathered == sorted(gathered)
    place = {text: index for index, text in enumerate(_order(server))}
    # A second step comes right behind the first one, or behind one request of the next question.
    assert all(
        place[text] - place[text.replace("last", "09")] <= 2 for text in place if "last" in text
    )


def test_a_second_step_goes_before_the_questions_behind(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """With one slot, a question is asked to its end before the next one begins."""
    server = serve()
    server.keep_bodies = True
    engine = make_engine(server.url, concurrency=1)

    async def steps(index: int, ask: Ask) -> None:
        for step in "abc":
            await ask(request_of(f"{index:02} {step}"), text_of)

    engine.submit([partial(steps, index) for index in range(20)]).result(timeout=60)
    assert _order(server) == sorted(_order(server))


def test_a_request_that_failed_is_sent_again_before_later_questions(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Once its wait is over it gets the next slot: it does not go behind all others."""
    server = serve(latency_s=0.005)
    texts: list[str] = []

    def script(payload: dict[str, Any]) -> str | None:
        texts.append(last_text(payload))
        return "500" if texts == ["question 0"] else None

    server.script = script
    engine = make_engine(server.url, concurrency=1)
    engine.submit([chain(f"question {index}") for index in range(60)]).result(timeout=60)
    assert 1 <= texts[1:].index("question 0") < 30


NAMES = tuple(f"http://10.0.0.{number}:8000/v1" for number in range(4))
CAPTIONS = [f"caption {number}".encode() for number in range(4_000)]


def test_the_replica_of_a_caption_depends_on_no_order_of_the_urls() -> None:
    """So that all processes choose the same one, and not one replica for all."""
    chosen = [
        [names[Replicas(names).choose(caption, 0.0)] for caption in CAPTIONS[:200]]
        for names in (NAMES, NAMES[::-1])
    ]
    assert chosen[0] == chosen[1]
    assert set(chosen[0]) == set(NAMES)


def test_captions_are_spread_about_evenly() -> None:
    replicas = Replicas(NAMES)
    first = Counter(replicas.order(caption)[0] for caption in CAPTIONS)
    assert sorted(first) == [0, 1, 2, 3]
    assert all(abs(n - 1_000) <= 150 for n in first.values())


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=300),
    st.integers(2, 6),
)
def test_no_replica_passes_its_bound_however_skewed_the_captions_are(
    steps: list[tuple[int, int]], n_replicas: int
) -> None:
    """With the request that it is given, a replica has at most 1.1 times the mean, or that rounded.

    Captions are three that are asked about all the time and one that is asked about rarely; of
    what is in flight another one is answered now and then.
    """
    replicas = Replicas([f"http://host{number}/v1" for number in range(n_replicas)])
    in_flight: list[int] = []
    for caption, place in steps:
        if place < len(in_flight):
            replicas.in_flight[in_flight.pop(place)] -= 1
        chosen = replicas.choose(f"skewed {caption}".encode(), 0.0)
        replicas.in_flight[chosen] += 1
        in_flight.append(chosen)
        mean = sum(replicas.in_flight) / n_replicas
        assert replicas.in_flight[chosen] <= max(ceil(mean), 1.1 * mean)


def test_a_replica_that_is_down_hands_on_its_captions_alone() -> None:
    replicas = Replicas(NAMES)
    before = [replicas.choose(caption, 0.0) for caption in CAPTIONS[:400]]
    replicas.down_until_s[1] = 10.0
    during = [replicas.choose(caption, 5.0) for caption in CAPTIONS[:400]]
    for caption, old, new in zip(CAPTIONS, before, during, strict=False):
        assert new == (replicas.order(caption)[1] if old == 1 else old)
    assert [replicas.choose(caption, 10.0) for caption in CAPTIONS[:400]] == before
    replicas.down_until_s[1] = 10.0
    replicas.down_until_s[1] = 0.0
    assert [replicas.choose(caption, 5.0) for caption in CAPTIONS[:400]] == before


def test_what_is_about_no_caption_goes_to_the_least_busy_that_is_up() -> None:
    replicas = Replicas(NAMES)
    replicas.in_flight[:] = [3, 1, 0, 2]
    assert replicas.choose(None, 0.0) == 2
    replicas.down_until_s[2] = 1.0
    assert replicas.choose(None, 0.0) == 1


KEY: Final = bytes(16)
HERE, THERE, THIRD = (f"http://{name}/v1" for name in ("here", "there", "third"))
ENDPOINTS: Final = {"here": (HERE,), "there": (THERE,), "both": (THIRD, THERE), "all": None}


def _save(folder: Path, whose: str, *replies: Reply) -> None:
    stored = StoredReplies(folder, patience_s=0.0, endpoints=ENDPOINTS[whose])
    for reply in replies:
        asyncio.run(stored.save("judge", KEY, reply))
    stored.close()


def _found(folder: Path, whose: str) -> str | None:
    stored = StoredReplies(folder, patience_s=0.0, endpoints=ENDPOINTS[whose])
    try:
        reply = stored.get("judge", KEY)
        assert stored.has("judge", KEY) == (reply is not None)
    finally:
        stored.close()
    return None if reply is None else reply.text


@pytest.mark.parametrize(
    ("saved", "found"),
    [
        pytest.param(
            [("all", HERE)],
            {"all": "0", "here": "0", "there": None, "both": None},
            id="kept by the model's name",
        ),
        pytest.param(
            [("all", None)],
            {"all": "0", "here": None, "there": None, "both": None},
            id="of an earlier version",
        ),
        pytest.param(
            [("all", None), ("here", HERE)],
            {"all": "0", "here": "1", "there": None, "both": None},
            id="beside that of an earlier version",
        ),
        pytest.param(
            [("here", HERE)],
            {"all": "0", "here": "0", "there": None, "both": None},
            id="the first one serves those who do not tell endpoints apart",
        ),
        pytest.param(
            [("here", HERE), ("there", THERE)],
            {"all": "0", "here": "0", "there": "1", "both": "1"},
            id="two, of which the second is one of two replicas'",
        ),
        pytest.param(
            [("here", HERE), ("both", THIRD), ("there", THERE)],
            {"all": "0", "here": "0", "there": "2", "both": "1"},
            id="three",
        ),
    ],
)
def test_whose_reply_is_found(
    saved: list[tuple[str, str | None]], found: dict[str, str | None], tmp_path: Path
) -> None:
    """By those who tell endpoints apart their own alone; by the others the first; none is lost."""
    for number, (whose, endpoint) in enumerate(saved):
        _save(tmp_path, whose, Reply(str(number), endpoint=endpoint))
    assert {whose: _found(tmp_path, whose) for whose in found} == found


def _chains(n: int) -> list[Chain[Asked[str]]]:
    def chain(number: int) -> Chain[Asked[str]]:
        async def run(ask: Ask) -> Asked[str]:
            request = Request(
                protocol="test:1",
                model="judge",
                messages=[{"role": "user", "content": f"prompt {number}"}],
                params={"temperature": 0.0, "max_tokens": 8},
                seed=0,
                timeout_s=5.0,
                stand_in=lambda: "",
            )
            return await ask(request, lambda reply: reply.text)

        return run

    return [chain(number) for number in range(n)]


def _numbered(number: int, payload: dict[str, Any]) -> Say:
    return Say(f"{number}: {last_text(payload)}")


def test_processes_with_an_endpoint_each_ask_all_of_their_own(
    serve: ServerFactory, make_engine: EngineFactory, tmp_path: Path
) -> None:
    """At the same time and with one store: nothing is asked twice, and both find all again."""
    servers = [serve(latency_s=0.02) for _ in range(2)]
    for number, server in enumerate(servers):
        server.script = partial(_numbered, number)
    n = 40
    child = os.fork()
    if not child:
        try:
            config = EngineConfig(
                (servers[1].url,), tmp_path / "replies", concurrency=8, store_by="endpoint"
            )
            with Engine(config) as engine:
                engine.submit(_chains(n)).result(timeout=60)
        finally:
            os._exit(0)
    engine = make_engine(servers[0].url, concurrency=8, store_by="endpoint")
    engine.submit(_chains(n)).result(timeout=60)
    os.waitpid(child, 0)
    assert [server.counts.n_requests for server in servers] == [n, n]
    for number, server in enumerate(servers):
        again = make_engine(server.url, store_by="endpoint")
        answers = again.submit(_chains(n)).result(timeout=60)
        assert [one.value for one in answers] == [f"{number}: prompt {i}" for i in range(n)]
        assert again.totals().from_store == {server.url: n}
    assert [server.counts.n_requests for server in servers] == [n, n]
