"""Requests about one caption over HTTP: to one replica, while it is up and not too busy."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from chains import chain, request_of, text_of
from conftest import EngineFactory, ServerFactory
from judge_server import Behaviour, JudgeServer, Say, last_text
from lmms_eval_captions.judges.endpoint.chain import Ask
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.replicas import Replicas
from lmms_eval_captions.judges.endpoint.urls import endpoint_name

N_CAPTIONS, N_QUESTIONS = 24, 6


class Heard:
    """Who was asked what; a script for several servers."""

    def __init__(self) -> None:
        self.by_caption: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """Caption to the servers that were asked about it."""
        self._lock = threading.Lock()

    def script(self, url: str) -> Callable[[dict[str, Any]], Say]:
        """What a server says, and notes."""

        def said(payload: dict[str, Any]) -> Say:
            with self._lock:
                self.by_caption[last_text(payload).split()[0]][url] += 1
            return Say("yes")

        return said


def _two_steps(caption: str, index: int) -> Callable[[Ask], Any]:
    """A question with a second step, which says another thing."""

    async def run(ask: Ask) -> str | None:
        first = await ask(request_of(f"{caption} question {index}"), text_of)
        second = await ask(request_of(f"{caption} match {index} {first.value}"), text_of)
        return second.reason

    return run


def _ask_about(engine: Engine, captions: Sequence[str], *, says_which: bool = True) -> None:
    futures = [
        engine.submit(
            [_two_steps(caption, index) for index in range(N_QUESTIONS)],
            about=caption.encode() if says_which else None,
        )
        for caption in captions
    ]
    for future in futures:
        assert future.result(timeout=60) == [None] * N_QUESTIONS


def _belongs_to(urls: Sequence[str], caption: str) -> str:
    return urls[Replicas(list(map(endpoint_name, urls))).order(caption.encode())[0]]


@pytest.fixture
def heard() -> Heard:
    """What the servers of a test hear."""
    return Heard()


@pytest.fixture
def urls(serve: ServerFactory, heard: Heard) -> list[str]:
    """Three replicas."""
    servers = [serve(latency_s=0.005) for _ in range(3)]
    for server in servers:
        server.script = heard.script(server.url)
    return [server.url for server in servers]


CAPTIONS = [f"caption{number}" for number in range(N_CAPTIONS)]


def test_both_steps_of_all_questions_of_a_caption_go_to_the_replica_it_belongs_to(
    urls: list[str], heard: Heard, make_engine: EngineFactory
) -> None:
    """In two engines with other orders of the URLs, as of two processes, it is the same one."""
    _ask_about(make_engine(*urls, concurrency=1), CAPTIONS[: N_CAPTIONS // 2])
    _ask_about(make_engine(*urls[::-1], concurrency=1), CAPTIONS)
    for caption in CAPTIONS:
        n_asked = 2 * N_QUESTIONS
        assert heard.by_caption[caption] == {_belongs_to(urls, caption): n_asked}
    assert len({url for asked in heard.by_caption.values() for url in asked}) == 3


def test_with_many_in_flight_far_more_of_them_do_than_by_chance(
    urls: list[str], heard: Heard, make_engine: EngineFactory
) -> None:
    """And each replica has about a third of all requests: least busy alone has it so, too.

    So many, as which captions belong where is drawn with the ports of the servers.
    """
    n_captions = 4 * N_CAPTIONS
    n_all = 2 * N_QUESTIONS * n_captions
    n_home = {}
    for says_which in (False, True):
        heard.by_caption.clear()
        captions = [f"{says_which}{number}" for number in range(n_captions)]
        _ask_about(make_engine(*urls, concurrency=24), captions, says_which=says_which)
        n_home[says_which] = sum(
            asked[_belongs_to(urls, name)] for name, asked in heard.by_caption.items()
        )
        loads = sum(heard.by_caption.values(), Counter())
        assert sum(loads.values()) == n_all
        assert max(loads.values()) <= 1.35 * n_all / 3
    assert n_home[True] >= 1.4 * n_home[False]
    assert n_home[True] >= 0.5 * n_all


def test_without_a_caption_the_least_busy_is_asked(
    urls: list[str], heard: Heard, make_engine: EngineFactory
) -> None:
    """With one request at a time that is the first one, as it always was."""
    _ask_about(make_engine(*urls, concurrency=1), CAPTIONS, says_which=False)
    assert all(set(asked) == {urls[0]} for asked in heard.by_caption.values())


def test_a_replica_that_fails_loses_its_captions_to_others_which_keep_their_own(
    urls: list[str], heard: Heard, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Nothing is lost, and what belongs to the others is asked there."""
    broken = serve(status=503)
    everyone = [*urls, broken.url]
    _ask_about(make_engine(*everyone, concurrency=1), CAPTIONS)
    own = [caption for caption in CAPTIONS if _belongs_to(everyone, caption) == broken.url]
    assert own
    for caption in CAPTIONS:
        if caption not in own:
            assert set(heard.by_caption[caption]) == {_belongs_to(everyone, caption)}
        else:
            assert len(heard.by_caption[caption]) == 1
    assert broken.counts.n_requests <= 3


def test_what_a_request_is_about_is_in_no_key_and_not_on_the_wire(
    make_engine: EngineFactory,
) -> None:
    """A rerun that says nothing of captions finds every reply, and bodies are the same."""
    with ExitStack() as servers:
        first, second = (servers.enter_context(JudgeServer(Behaviour())) for _ in range(2))
        for server in (first, second):
            server.keep_bodies = True
        engine = make_engine(first.url, second.url)
        engine.submit([chain("a"), chain("b")], about=b"marked").result(timeout=30)
        bodies = [*first.bodies, *second.bodies]
        assert sorted(body["messages"][0]["content"] for body in bodies) == ["a", "b"]
        assert all(set(body) == {"model", "messages", "temperature", "max_tokens", "seed"}
                   for body in bodies)  # fmt: skip
        engine.close()
        again = make_engine(first.url, second.url)
        again.submit([chain("a"), chain("b")]).result(timeout=30)
        assert again.meter.n_calls == 0


def test_each_chain_may_be_about_a_caption_of_its_own(
    urls: list[str], heard: Heard, make_engine: EngineFactory
) -> None:
    """As the questions with captions of ours are."""
    engine = make_engine(*urls, concurrency=1)
    chains = [_two_steps(caption, 0) for caption in CAPTIONS]
    engine.submit(chains, about=[caption.encode() for caption in CAPTIONS]).result(timeout=60)
    for caption in CAPTIONS:
        assert set(heard.by_caption[caption]) == {_belongs_to(urls, caption)}


def test_with_one_url_a_request_is_not_even_marked(
    serve: ServerFactory, make_engine: EngineFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What chooses among replicas costs nothing where there is one."""
    marked: list[object] = []
    server = serve()
    engine = make_engine(server.url)
    real = type(engine._sender).send

    def send(sender: Any, index: int, request: Any, attempt: int) -> Any:
        marked.append(request.about)
        return real(sender, index, request, attempt)

    monkeypatch.setattr(type(engine._sender), "send", send)
    engine.submit([chain(f"{n}") for n in range(5)], about=b"caption").result(timeout=30)
    assert marked == [None] * 5


@pytest.mark.parametrize("headers", ["openai", "anthropic", "seconds"])
def test_limits_that_leave_plenty_change_nothing_of_it(
    headers: str, heard: Heard, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Most addresses say their limits with every answer, long before any is near."""
    servers = [serve(limit_headers=headers, rate=100_000.0) for _ in range(3)]
    for server in servers:
        server.script = heard.script(server.url)
    urls = [server.url for server in servers]
    _ask_about(make_engine(*urls, concurrency=1), CAPTIONS)
    for caption in CAPTIONS:
        assert set(heard.by_caption[caption]) == {_belongs_to(urls, caption)}
