"""Requests whose stored replies are unreadable: asked again if that is set, and counted."""

from __future__ import annotations

from typing import Any

import pytest

from chains import chain
from conftest import EngineFactory, ServerFactory
from judge_server import JudgeServer, Say
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.request import Asked, Reply
from told_judge import attempt_of


class _Script:
    """Says "yes" from a given attempt on, to each text of its own; until then what says nothing."""

    def __init__(self, server: JudgeServer, *, readable_from: int = 100) -> None:
        self.readable_from = readable_from
        self.attempts: list[int] = []
        self.fault: dict[int, str] = {}
        server.script = self

    def __call__(self, payload: dict[str, Any]) -> Say | str:
        attempt = attempt_of(payload)
        self.attempts.append(attempt)
        if attempt in self.fault:
            return self.fault[attempt]
        return Say("yes" if attempt >= self.readable_from else "hm")


def _yes(reply: Reply) -> str | None:
    return reply.text if reply.text == "yes" else None


def _ask(engine: Engine, n: int = 1) -> list[Asked[str]]:
    asked = engine.submit([chain("a", read=_yes)] * n).result(timeout=60)
    engine.close()
    return asked


def test_a_question_of_this_run_is_asked_as_often_as_ever(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    script = _Script(server := serve())
    [one] = _ask(make_engine(server.url, ask_again=True))
    assert script.attempts == [0, 1, 2, 3]
    assert one.reason == "unreadable reply, asked 4 times"
    assert not one.cached


def test_those_who_ask_the_same_share_what_is_asked_anew(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Equal questions of several captions, at once or later on, cost four samples in all."""
    script = _Script(server := serve(latency_s=0.02))
    _ask(make_engine(server.url))
    engine = make_engine(server.url, ask_again=True)
    first = engine.submit([chain("a", read=_yes)] * 5).result(timeout=60)
    second = engine.submit([chain("a", read=_yes)] * 5).result(timeout=60)
    assert script.attempts == list(range(8))
    assert {one.reason for one in (*first, *second)} == {"unreadable reply, asked 8 times"}
    assert sum(one.usage.n_calls for one in (*first, *second)) == 4


def test_a_run_that_was_ended_in_between_goes_on_from_there(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    script = _Script(server := serve())
    script.fault = {2: "filter"}
    [one] = _ask(make_engine(server.url))
    assert "content filter" in str(one.reason)
    script.fault, script.attempts = {}, []
    [one] = _ask(make_engine(server.url))
    assert script.attempts == [2, 3]
    script.fault, script.attempts = {6: "filter"}, []
    [one] = _ask(make_engine(server.url, ask_again=True))
    assert script.attempts == [4, 5, 6]
    assert "content filter" in str(one.reason)
    script.fault, script.attempts = {}, []
    [one] = _ask(make_engine(server.url))
    assert (script.attempts, one.reason) == ([], "unreadable reply, asked 6 times")
    [one] = _ask(make_engine(server.url, ask_again=True))
    assert (script.attempts, one.reason) == ([6, 7, 8, 9], "unreadable reply, asked 10 times")


def test_what_came_late_serves_every_later_run(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A verdict of the sixth sample is the question's own from then on, at no cost."""
    script = _Script(server := serve(), readable_from=5)
    [one] = _ask(make_engine(server.url))
    assert one.value is None
    [one] = _ask(make_engine(server.url, ask_again=True))
    assert (one.value, one.cached, one.usage.n_calls) == ("yes", False, 2)
    script.attempts = []
    for again in (False, True):
        [one] = _ask(make_engine(server.url, ask_again=again))
        assert (one.value, one.cached, one.usage.n_calls) == ("yes", True, 0)
    assert script.attempts == []


@pytest.mark.parametrize("n_rereads", [0, 1, 3])
def test_as_many_samples_are_asked_anew_as_the_first_time(
    n_rereads: int, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """The first ask and its fresh samples, with seeds that were not used before."""
    script = _Script(server := serve())
    for again in (False, True, True):
        _ask(make_engine(server.url, ask_again=again, n_rereads=n_rereads))
    assert script.attempts == list(range(3 * (1 + n_rereads)))
