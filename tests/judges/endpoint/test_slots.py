"""A slot belongs to a request: as many are on the wire as may be, in the order of the questions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import wait
from functools import partial
from typing import Any

import pytest

from chains import chain, request_of, text_of
from conftest import EngineFactory, ServerFactory
from judge_server import last_text
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.request import Ask, Asked
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
        or any(not granted.done() for granted in slots._waiting)
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
    """Those that are gathered one after the other, and captions in the order of submission."""
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
