"""What the engine does about errors of its own, and about threads and processes beside it."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future, wait

import pytest

from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Chain, Request
from lmms_eval_captions.judges.errors import JudgeStoppedError
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN, MOST_ENGINES

STRESS_S = 2.0


def _request(text: str) -> Request:
    return Request(
        protocol="test:1",
        model="judge",
        messages=[{"role": "user", "content": text}],
        params={"temperature": 0.0, "max_tokens": 8},
        seed=0,
        timeout_s=5.0,
        stand_in=lambda: "",
    )


def _chain(text: str) -> Chain[Asked[str]]:
    return lambda ask: ask(_request(text), lambda reply: reply.text or None)


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


def test_after_an_error_of_ours_another_engine_follows(
    serve: ServerFactory, bench: pytest.MonkeyPatch
) -> None:
    """Later captions are judged, within the same cost limit, and no more engines than a few."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", serve().url)
    bench.setenv("LMMS_CAPTIONS_MAX_COST", "5")
    bench.setenv("LMMS_CAPTIONS_JUDGE", "gpt-4o-mini-2024-07-18")
    bench.setenv("OPENAI_API_KEY", "sk-test")
    first = JUDGE_RUN.engine()
    assert first._budget is not None
    first._budget.spent_usd = 2.0
    engine = first
    for number in range(MOST_ENGINES):
        engine = JUDGE_RUN.engine()
        assert engine.submit([_chain_of("gpt-4o-mini-2024-07-18", str(number))]).result(5)[0].value
        assert engine.spent_usd >= 2.0
        engine._loop.call_soon_threadsafe(engine._on_defect, RuntimeError("a defect"))
        engine._thread.join(5)
        assert "a defect" in str(engine.defect)
    assert JUDGE_RUN.engine() is engine
    late = JUDGE_RUN.engine().submit([_chain("late")]).exception(timeout=5)
    assert "a defect" in str(late)


def _chain_of(model: str, text: str) -> Chain[Asked[str]]:
    base = _request(text)
    request = Request(
        base.protocol, model, base.messages, base.params, base.seed, base.timeout_s, base.stand_in
    )
    return lambda ask: ask(request, lambda reply: reply.text or None)


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
