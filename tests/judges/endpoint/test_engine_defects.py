"""What the engine does about errors of its own, and about threads and processes beside it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import pytest

from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint import budget as budgets
from lmms_eval_captions.judges.endpoint.budget import Budget
from lmms_eval_captions.judges.endpoint.chain import Ask, Chain
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.outcome import Asked
from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.slots import Slots
from lmms_eval_captions.judges.endpoint.store.store import ReplyStore
from lmms_eval_captions.judges.errors import JudgeStoppedError
from lmms_eval_captions.lmms_eval_tasks import judged
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


def _fail(*_: object, **__: object) -> Any:
    raise RuntimeError("a defect")


@pytest.mark.parametrize("name", ["fill", "_fill"])
def test_places_that_fail_for_good_end_judging_with_the_cause(
    name: str, serve: ServerFactory, make_engine: EngineFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for a place is told why there will be none, and so is what comes later."""
    engine = make_engine(serve(latency_s=0.02).url, concurrency=2)
    futures = [engine.submit([_chain(f"prompt {i}") for i in range(8)]) for _ in range(3)]
    monkeypatch.setattr(Slots, name, _fail)
    futures.append(engine.submit([_chain("last")]))
    assert not wait(futures, timeout=5).not_done
    assert "a defect" in str(engine.defect or futures[-1].exception())
    monkeypatch.undo()
    engine.close()
    error = engine.submit([_chain("later")]).exception(timeout=5)
    assert isinstance(error, JudgeStoppedError)


def test_what_a_tick_raises_does_not_keep_others_replies_away(
    tmp_path: Path,
    serve: ServerFactory,
    make_engine: EngineFactory,
    monkeypatch: pytest.MonkeyPatch,
    logged: list[str],
) -> None:
    """Claims that fail are said once; replies that others store are found all the same."""
    server = serve()
    engine = make_engine(server.url)
    monkeypatch.setattr(engine._claims, "_follow", _fail)
    engine.submit([_chain("mine")]).result(timeout=5)
    request = _request("theirs")
    other = ReplyStore(tmp_path / "replies" / "judge")
    other.put(request.key(request.body(0)), Reply("found").to_json())
    time.sleep(1.0)
    asked = engine.submit([_chain("theirs")]).result(timeout=5)
    assert asked[0].value == "found"
    assert sum("judging goes on" in line for line in logged) == 1
    other.close()


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

    def draw(_: object) -> None:
        raise error("in a callback")

    other = engine.submit([_chain("prompt")])
    monkeypatch.setattr(engine._bar, "refresh", draw)
    assert "in a callback" in str(other.exception(timeout=5))
    engine._thread._thread.join(5)
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
        engine._thread._loop.call_soon_threadsafe(
            engine._thread.on_defect, RuntimeError("a defect")
        )
        engine._thread._thread.join(5)
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


def test_what_a_task_left_reserved_counts_as_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that ended without settling its worst case holds nobody up for ever."""
    monkeypatch.setattr(budgets, "_LOOK_AGAIN_S", 0.05)

    async def run() -> Budget:
        budget = Budget(1.0, load_prices())
        await asyncio.create_task(budget.reserve(0.6))
        with pytest.raises(JudgeStoppedError, match="are spent"):
            await asyncio.wait_for(budget.reserve(0.6), 5)
        return budget

    assert asyncio.run(run()).spent_usd == pytest.approx(0.6)


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


_FORKED = """
import os, sys
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN, judge_caption

async def chain(ask):
    import asyncio
    await asyncio.sleep(float(os.environ.get("CHAIN_S", "0")))
    return ("judged",)

def judge(text):
    defaults = {{"model": "judge", "runs": 1, "temperature": 0, "max_tokens": 8}}
    return judge_caption(text, task="t", video_id="v", aspect=None, defaults=defaults,
                         chains=lambda config: [chain], silent=lambda config: ())

settled, again = judge("settled"), None
settled()
os.environ["CHAIN_S"] = "2"
waiting = judge("waiting")
JUDGE_RUN._lock.acquire()  # as another thread of the parent may have, at that moment
child = os.fork()
if child:
    JUDGE_RUN._lock.release()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert waiting().judgements == ["judged"]
    print("parent", status)
    sys.exit(0)
print("settled", settled().judgements)
print("waiting", waiting().reason)
print("new", judge("new").__call__().reason)
JUDGE_RUN.close()
sys.exit(7)  # with what is registered to be done at the end
"""


def test_a_forked_child_is_told_and_ends(serve: ServerFactory, tmp_path: Path) -> None:
    """It gets what was judged, errors for the rest, and its end does not wait for the parent's."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "LMMS_CAPTIONS_CACHE": str(tmp_path),
        "LMMS_CAPTIONS_JUDGE": "judge",
        "LMMS_CAPTIONS_JUDGE_URL": serve().url,
    }
    done = subprocess.run(
        [sys.executable, "-c", _FORKED.replace("{{", "{").replace("}}", "}")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "settled ['judged']", done.stderr
    assert lines[1] == f"waiting {judged._ELSEWHERE}"
    assert lines[2].startswith("new this process was forked from one that was judging")
    assert lines[3] == "parent 7"
