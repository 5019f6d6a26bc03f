"""The store where endpoints are told apart: one after the other, and at the same time."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from conftest import EngineFactory, ServerFactory
from judge_server import Say, last_text
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Chain, Reply, Request
from lmms_eval_captions.judges.endpoint.store import StoredReplies

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
