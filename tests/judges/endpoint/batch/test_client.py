"""Judging through a Batch API: against a stand-in of its endpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from batch_server import BatchServer
from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.endpoint import BatchPace
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.request import Asked, Chain, Reply, Request
from lmms_eval_captions.judges.errors import JudgeStoppedError
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.vdc import Question, judge_question
from lmms_eval_captions.judges.verdict import MatchJudgement

PACE = BatchPace(quiet_s=0.1, first_poll_s=0.02, most_poll_s=0.05, patience_s=10.0)

MakeEngine = Callable[..., Engine]


@pytest.fixture
def server() -> Iterator[BatchServer]:
    """A provider with a Batch API."""
    with BatchServer() as running:
        yield running


@pytest.fixture
def batch_engine(server: BatchServer, make_engine: EngineFactory) -> MakeEngine:
    """Makes engines that ask it, with short waits."""

    def make(pace: BatchPace = PACE, **settings: object) -> Engine:
        defaults = {"mode": "batch", "concurrency": 1000, "n_attempts": 3, "patience_s": 1e6}
        return make_engine(server.url, batch_pace=pace, **{**defaults, **settings})

    return make


def _chain(text: str, *, model: str = "judge", seed: int = 0) -> Chain[Asked[str]]:
    request = Request(
        protocol="test:1",
        model=model,
        messages=[{"role": "user", "content": text}],
        params={"temperature": 0.0, "max_tokens": 8},
        seed=seed,
        timeout_s=0.001,
        stand_in=lambda: "",
    )
    return lambda ask: ask(request, _text)


def _text(reply: Reply) -> str | None:
    return reply.text or None


def _ask_all(engine: Engine, n: int, *, model: str = "judge") -> list[Asked[str]]:
    chains = [_chain(f"prompt {i}", model=model) for i in range(n)]
    return engine.submit(chains).result(timeout=30)


def _vdc(n: int) -> list[Chain[MatchJudgement]]:
    config = JudgeConfig(model="judge")

    def chain(i: int) -> Chain[MatchJudgement]:
        question = Question(f"What is number {i}?", f"Number {i}.")
        return lambda ask: judge_question(ask, question, "A caption.", config=config, run=0)

    return [chain(i) for i in range(n)]


def test_a_benchmark_of_two_steps_takes_two_batches(
    server: BatchServer, batch_engine: MakeEngine
) -> None:
    """All first steps are one batch, all second steps another, and each reply finds its request."""
    engine = batch_engine()
    judged = engine.submit(_vdc(300)).result(timeout=30)
    assert server.sizes == [300, 300]
    assert all(one.verdict in ("yes", "no") and one.usage.n_calls == 2 for one in judged)
    assert len({one.predicted_answer for one in judged}) == 300
    assert set(server.paid.values()) == {1}
    assert engine.meter.n_calls == 600


def test_three_seeds_that_are_refused_are_three_requests_of_a_batch(
    server: BatchServer, batch_engine: MakeEngine
) -> None:
    """Bodies that differ in a refused seed alone get a reply each."""
    message = 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'

    def fate(_number: int, body: dict[str, Any]) -> Any:
        return (400, {"error": {"message": message}}) if "seed" in body else None

    server.fate = fate
    chains = [_chain("prompt", seed=seed) for seed in range(3)]
    asked = batch_engine().submit(chains).result(timeout=30)
    assert [one.usage.refused for one in asked] == [("seed",)] * 3
    assert server.sizes == [3, 3]
    assert server.paid == {"prompt None": 3}


def test_batch_and_now_give_the_same(
    server: BatchServer, batch_engine: MakeEngine, serve: Callable[..., object], tmp_path: Path
) -> None:
    """Both ways send the same bodies and file replies under the same keys."""
    assert all(one.reason is None for one in _ask_all(batch_engine(), 20))
    n_calls = len(server.requests)
    again = _ask_all(batch_engine(mode="now"), 20)
    assert all(one.cached for one in again)
    assert [one.value for one in again] == [server.reply(f"prompt {i}") for i in range(20)]
    assert len(server.requests) == n_calls


def test_a_batch_holds_no_more_than_allowed(server: BatchServer, batch_engine: MakeEngine) -> None:
    """Batches are cut at the number of requests and at the number of bytes, and kept to a model."""
    pace = replace(PACE, max_requests=40)
    _ask_all(batch_engine(pace), 100)
    assert sorted(server.sizes) == [20, 40, 40]
    server.sizes.clear()
    pace = replace(PACE, max_bytes=1000)
    _ask_all(batch_engine(pace), 20, model="other")
    assert sum(server.sizes) == 20
    assert max(len(server.files[b["input_file_id"]]) for b in server.batches.values()) < 10_000
    assert all(2 <= size <= 6 for size in server.sizes)
    server.sizes.clear()
    chains = [_chain(f"new {i}", model=f"model {i % 3}") for i in range(9)]
    batch_engine().submit(chains).result(timeout=30)
    assert server.sizes == [3, 3, 3]


def test_failures_of_single_requests_are_classified_like_answers(
    server: BatchServer, batch_engine: MakeEngine
) -> None:
    """A 500 goes into the next batch; a 400 and an unknown error leave their question unscored."""

    def fate(batch: int, body: dict[str, Any]) -> Any:
        number = int(str(body["messages"][0]["content"]).split()[1])
        refusal = {"error": {"message": "told to answer 400"}}
        return {
            0: (500, {"error": {"message": "passing"}}) if batch == 0 else None,
            1: (400, refusal),
            2: "server_mishap",
            3: "missing" if batch == 0 else None,
        }.get(number)

    server.fate = fate
    asked = _ask_all(batch_engine(), 10)
    assert [i for i, one in enumerate(asked) if one.value is None] == [1, 2]
    assert "told to answer 400" in str(asked[1].reason)
    assert "server_mishap" in str(asked[2].reason)
    assert server.sizes == [10, 2]
    # What failed is asked again by a rerun, and nothing else.
    server.fate = lambda _batch, _body: None
    assert all(one.reason is None for one in _ask_all(batch_engine(), 10))
    assert server.sizes == [10, 2, 2]
    assert set(server.paid.values()) == {1}


def test_a_batch_that_expired_is_continued_by_another(
    server: BatchServer, batch_engine: MakeEngine
) -> None:
    """Replies that are there count; the rest goes into a further batch."""
    server.ends = ["expired"]
    server.fate = lambda batch, body: (
        "batch_expired" if batch == 0 and "7" in body["messages"][0]["content"] else None
    )
    assert all(one.reason is None for one in _ask_all(batch_engine(), 20))
    assert server.sizes == [20, 2]
    assert set(server.paid.values()) == {1}


def test_batches_that_always_expire_are_given_up_on(
    server: BatchServer, batch_engine: MakeEngine
) -> None:
    """Each request goes into three batches at most."""
    server.ends = ["expired"] * 9
    server.fate = lambda _batch, _body: "batch_expired"
    asked = _ask_all(batch_engine(), 5)
    assert all(one.value is None and "expired" in str(one.reason) for one in asked)
    assert server.sizes == [5, 5, 5]


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_a_batch_that_was_cancelled_or_refused_stops_judging(
    end: str, server: BatchServer, batch_engine: MakeEngine
) -> None:
    """It is not submitted again by itself; a rerun submits what has no reply."""
    server.ends = [end]
    server.fate = lambda batch, body: (
        "batch_cancelled" if batch == 0 and "7" in body["messages"][0]["content"] else None
    )
    asked = _ask_all(batch_engine(), 20)
    n_missing = 2 if end == "cancelled" else 20
    assert sum(one.value is None for one in asked) == n_missing
    words = {"cancelled": "cancelled at the provider", "failed": "told to refuse"}[end]
    assert all(words in str(one.reason) for one in asked if one.value is None)
    assert server.sizes == [20]
    assert all(one.reason is None for one in _ask_all(batch_engine(), 20))
    assert server.sizes == [20, n_missing]
    assert set(server.paid.values()) == {1}


def test_a_provider_that_takes_no_more_at_once_gets_smaller_batches(
    server: BatchServer, batch_engine: MakeEngine, logged: list[str]
) -> None:
    """A batch above the account's limit is halved until it fits, one after the other."""
    server.most_requests = 30
    assert all(one.reason is None for one in _ask_all(batch_engine(), 100))
    assert server.sizes == [25, 25, 25, 25]
    assert any("Enqueued token limit" in line for line in logged)


@pytest.mark.parametrize("path", ["/files", "/batches"])
def test_an_answer_that_is_lost_costs_nothing(
    path: str, server: BatchServer, batch_engine: MakeEngine
) -> None:
    """A dropped connection after the provider acted makes no second batch."""
    server.lose_answers[path] = 2
    assert all(one.reason is None for one in _ask_all(batch_engine(), 10))
    assert server.sizes == [10]
    assert set(server.paid.values()) == {1}


_SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from test_client import PACE, _vdc
engine = Engine(EngineConfig(urls=({url!r},), store=Path({folder!r}) / "replies", mode="batch",
                             concurrency=1000, patience_s=1e6, batch_pace=PACE))
judged = engine.submit(_vdc(50)).result()
print("scored", sum(one.verdict is not None for one in judged), engine.meter.n_calls)
engine.close()
"""


@pytest.mark.parametrize("step", [0, 1])
def test_a_run_killed_while_waiting_collects_its_batch(
    step: int, server: BatchServer, tmp_path: Path
) -> None:
    """After SIGKILL during either step's batch a new start submits and pays nothing twice."""
    tests = Path(__file__).parents[3]
    folders = (Path(__file__).parent, tests, tests / "support")
    paths = list(map(str, folders))
    script = _SCRIPT.format(paths=paths, url=server.url, folder=str(tmp_path))
    server.held = step == 0
    victim = subprocess.Popen([sys.executable, "-c", script], env=dict(os.environ))
    try:
        if step:
            _until(lambda: bool(server.paid))
            server.held = True
        _until(lambda: len(server.sizes) == step + 1 and _is_polled(server, f"batch-{step}"))
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    assert sum(server.paid.values()) == 50 * step
    server.held = False
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
        ).stdout
        for _ in range(2)
    ]
    assert outputs == [f"scored 50 {100 - 50 * step}\n", "scored 50 0\n"]
    assert server.sizes == [50, 50]
    assert set(server.paid.values()) == {1}


def test_a_run_killed_while_submitting_finds_its_batch(
    server: BatchServer, batch_engine: MakeEngine, tmp_path: Path
) -> None:
    server.held = True
    engine = batch_engine()
    future = engine.submit([_chain(f"prompt {i}") for i in range(10)])
    _until(lambda: bool(server.sizes) and _is_polled(server, "batch-0"))
    engine.close()
    with pytest.raises(JudgeStoppedError):
        future.result(timeout=5)
    record = next((tmp_path / "batches").glob("*.json"))
    record.write_text(record.read_text().replace('"batch-0"', "null"))
    server.held = False
    assert all(one.reason is None for one in _ask_all(batch_engine(), 10))
    assert server.sizes == [10]


def test_a_batch_that_was_never_made_is_submitted(
    server: BatchServer, batch_engine: MakeEngine, tmp_path: Path
) -> None:
    """A record of a batch that the provider does not have loses no request."""
    server.held = True
    engine = batch_engine()
    engine.submit([_chain(f"prompt {i}") for i in range(10)])
    _until(lambda: bool(server.sizes) and _is_polled(server, "batch-0"))
    engine.close()
    record = next((tmp_path / "batches").glob("*.json"))
    record.write_text(record.read_text().replace('"batch-0"', "null"))
    server.batches.clear()
    server.held = False
    assert all(one.reason is None for one in _ask_all(batch_engine(), 10))
    assert server.sizes == [10, 10]
    assert not record.exists()


def test_a_batch_of_another_account_is_not_paid_for_again_unasked(
    server: BatchServer, batch_engine: MakeEngine, tmp_path: Path
) -> None:
    server.held = True
    engine = batch_engine()
    engine.submit([_chain("prompt 0")])
    _until(lambda: bool(server.sizes) and _is_polled(server, "batch-0"))
    engine.close()
    server.batches.clear()
    one = _ask_all(batch_engine(), 1)[0]
    record = next((tmp_path / "batches").glob("*.json"))
    assert str(record) in str(one.reason)
    assert server.sizes == [1]


def test_an_endpoint_without_a_batch_api_is_named(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A server that knows chat completions alone stops judging with what to set."""
    chat = serve()
    engine = make_engine(chat.url, mode="batch", batch_pace=PACE)
    assert "LMMS_CAPTIONS_JUDGE_MODE" in str(_ask_all(engine, 2)[0].reason)


def test_the_key_is_in_no_file_and_no_log(
    server: BatchServer, batch_engine: MakeEngine, tmp_path: Path, logged: list[str]
) -> None:
    """Neither a right key nor a wrong one that the provider echoes is written anywhere."""
    key = server.key = "sk-very-secret-0123456789"
    server.reply = lambda _: f"your key is {key}"
    server.fate = lambda _batch, body: (
        (400, {"error": {"message": f"bad key {key}"}})
        if "2" in body["messages"][0]["content"]
        else None
    )
    right = _ask_all(batch_engine(api_key=key), 3)
    assert [one.value for one in right] == ["your key is [key]"] * 2 + [None]
    wrong = _ask_all(batch_engine(api_key=f"{key}-wrong"), 1, model="other")[0]
    assert "401" in str(wrong.reason)
    texts = [str(wrong), *map(str, right), *logged]
    texts += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in texts if key in text]


def _is_polled(server: BatchServer, batch: str) -> bool:
    return f"GET /v1/batches/{batch}" in server.requests


def _until(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
