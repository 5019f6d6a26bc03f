"""First questions on the wire: ahead of the others where a cache shows that it pays."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any

import pytest

from chains import chain
from conftest import EngineFactory, ServerFactory
from judge_server import JudgeServer, last_text
from lmms_eval_captions.judges.endpoint import head_start
from lmms_eval_captions.judges.endpoint.engine import Engine

N_CAPTIONS, N_QUESTIONS, N_SLOTS = 140, 8, 16
"""So many captions that it is settled before the last ones, which takes the longer the busier the
machine is, and 80 at most."""


class Cache:
    """A server's cache of captions: one is there when its first reply has gone out."""

    def __init__(self, server: JudgeServer, *, tells: bool = True) -> None:
        self.came: defaultdict[str, list[bool]] = defaultdict(list)
        """Caption to whether it was in the cache when each of its questions came."""
        self._known: set[str] = set()
        self._found: dict[str, bool] = {}
        self._tells = tells
        self._lock = threading.Lock()
        server.script = self._on_request
        server.more_usage = self._on_reply

    def _on_request(self, payload: dict[str, Any]) -> None:
        text = last_text(payload)
        caption = text.split()[0]
        with self._lock:
            self._found[text] = caption in self._known
            self.came[caption].append(self._found[text])

    def _on_reply(self, payload: dict[str, Any]) -> dict[str, object]:
        text = last_text(payload)
        with self._lock:
            self._known.add(text.split()[0])
        n_cached = 20 if self._found[text] else 1
        return {"prompt_tokens_details": {"cached_tokens": n_cached}} if self._tells else {}


def _ask(engine: Engine, *, says_which: bool = True) -> None:
    names = [f"caption{number}" for number in range(N_CAPTIONS)]
    futures = [
        engine.submit(
            [chain(f"{name} question {index} " + "x" * 100) for index in range(N_QUESTIONS)],
            about=name.encode() if says_which else None,
        )
        for name in names
    ]
    for future in futures:
        assert [asked.reason for asked in future.result(timeout=60)] == [None] * N_QUESTIONS


def _late_captions(cache: Cache) -> list[list[bool]]:
    """Those that began when it was settled, but the last ones, behind which no other waits."""
    return [cache.came[f"caption{number}"] for number in range(80 + N_SLOTS, N_CAPTIONS - N_SLOTS)]


def test_where_it_pays_the_others_come_when_the_first_was_answered(
    serve: ServerFactory, make_engine: EngineFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All slots are in use meanwhile, and the cached tokens are counted as they were told."""
    # A busy machine must not make an answer late; how long they are held, test_head_start has.
    monkeypatch.setattr(head_start, "_LEAST_HOLD_S", 10.0)
    server = serve(latency_s=0.03)
    cache = Cache(server)
    engine = make_engine(server.url, concurrency=N_SLOTS)
    _ask(engine)
    assert engine.head_start[0] == "on"
    as_it_should = [False] + [True] * (N_QUESTIONS - 1)
    assert [found for found in _late_captions(cache) if found != as_it_should] == []
    assert server.counts.most_in_flight == N_SLOTS
    n_found = sum(sum(found) for found in cache.came.values())
    n_asked = N_CAPTIONS * N_QUESTIONS
    assert engine.meter.cached_tokens == {"judge": 20 * n_found + (n_asked - n_found)}
    assert engine.totals().cached_tokens == dict(engine.meter.cached_tokens)


@pytest.mark.parametrize("way", ["nothing told", "no caption named", "two slots"])
def test_elsewhere_questions_go_out_as_they_always_did(
    way: str, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """In the order of submission, as soon as there is a slot."""
    server = serve(latency_s=0.01)
    cache = Cache(server, tells=way != "nothing told")
    engine = make_engine(server.url, concurrency=2 if way == "two slots" else N_SLOTS)
    _ask(engine, says_which=way != "no caption named")
    assert engine.head_start[0] == ("tried" if way == "no caption named" else "off")
    if way != "two slots":
        assert any(found[:2] == [False, False] for found in _late_captions(cache))
