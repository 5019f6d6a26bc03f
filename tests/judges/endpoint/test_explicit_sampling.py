"""Sampling parameters that are sent explicitly, to servers that take them and to others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import pytest

from chains import PARAMS, chain
from conftest import EngineFactory, ServerFactory
from judge_server import JudgeServer, Refuse, Say, scripted_reply
from lmms_eval_captions.judges.endpoint.adapt import NEUTRAL, added_params
from lmms_eval_captions.judges.endpoint.request import Asked, Chain
from lmms_eval_captions.judges.endpoint.urls import is_self_hosted

OPENAI = {"model", "messages", "temperature", "max_tokens", "seed", "logprobs", "top_logprobs"}
"""What a request may hold beside the sampling parameters."""


def _asks(text: str, *, model: str = "judge", **params: object) -> Chain[Asked[str]]:
    return chain(text, model=model, params={**PARAMS, **params})


def _strict(payload: Mapping[str, Any]) -> str | None:
    extra = sorted(set(payload) - OPENAI)
    if not extra:
        return None
    found = [{"type": "extra_forbidden", "loc": ["body", name]} for name in extra]
    return f"{found}: Extra inputs are not permitted"


def _by_name(name: str) -> Callable[[Mapping[str, Any]], str | None]:
    words = f"Unsupported parameter: '{name}'. Supported: 'temperature', 'max_tokens'."
    return lambda payload: words if name in payload else None


def _text_generation_inference(payload: Mapping[str, Any]) -> str | None:
    share = payload.get("top_p")
    return None if share is None or 0 < share < 1 else "`top_p` must be > 0.0 and < 1.0"


def _no_negative(payload: Mapping[str, Any]) -> str | None:
    return "top_k must be a non-negative integer" if payload.get("top_k", 0) < 0 else None


REFUSING: dict[str, tuple[int, Callable[[Mapping[str, Any]], str | None]]] = {
    "strict": (422, _strict),
    "strict with 400": (400, _strict),
    "transformers serve": (422, lambda p: _strict(p) and "Unexpected keys in the request"),
    "without a word": (400, lambda p: _strict(p) and ""),
    "a gateway": (404, lambda p: _strict(p) and "No endpoint can handle the parameters"),
    "text-generation-inference": (422, _text_generation_inference),
    "no negative number": (400, _no_negative),
    "a wrapper that fails": (
        500,
        lambda p: _strict(p) and "generate() got an unexpected keyword argument 'min_p'",
    ),
    **{f"refuses {name}": (400, _by_name(name)) for name in NEUTRAL},
}
"""Servers that do not take what is sent explicitly: status, and what they say of a request."""


def _script(
    server: JudgeServer,
    status: int,
    refuse: Callable[[Mapping[str, Any]], str | Literal[False] | None],
) -> None:
    def script(payload: dict[str, Any]) -> Refuse | None:
        words = refuse(payload)
        return None if words is None or words is False else Refuse(status, words)

    server.script = script
    server.keep_bodies = True


def _explicit(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in NEUTRAL if name in body}


@pytest.mark.parametrize("takes", ["all, as vLLM does", "those it knows, as llama.cpp does"])
def test_a_server_that_takes_them_is_sent_all_with_every_request(
    takes: str, serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """Nothing is sent twice, nothing is said, fresh samples have them, too."""
    server = serve()
    server.keep_bodies = True
    llama = takes.endswith("llama.cpp does")
    server.script = lambda p: Say("ok") if llama or "repetition_penalty" in p else Refuse(400, "")
    engine = make_engine(server.url, added_params=NEUTRAL)
    read = engine.submit([_asks(f"prompt {i}") for i in range(30)]).result(timeout=30)
    assert all(one.reason is None for one in read)
    assert server.counts.n_requests == 30
    assert all(_explicit(body) == dict(NEUTRAL) for body in server.bodies)
    assert not [line for line in logged if "sent without" in line]


@pytest.mark.parametrize("kind", REFUSING)
def test_a_server_that_refuses_them_is_asked_without(
    kind: str, serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """Whatever its words: all is answered, it is said once, and no signature speaks of it."""
    server = serve()
    _script(server, *REFUSING[kind])
    engine = make_engine(server.url, added_params=NEUTRAL, concurrency=4)
    asked = engine.submit([_asks(f"prompt {i}") for i in range(40)]).result(timeout=30)
    assert [one.value for one in asked] == [scripted_reply(f"prompt {i}") for i in range(40)]
    assert {one.usage.refused for one in asked} == {()}
    assert server.counts.n_requests <= 40 + 4
    assert all(set(body) <= OPENAI for body in server.bodies)
    said = [line for line in logged if "are sent without" in line]
    assert len(said) == 1
    assert said[0].startswith("INFO requests are sent without top_p, top_k, min_p, repetition_pen")
    assert not [line for line in logged if line.startswith("WARNING")]


def test_a_server_that_ends_the_connection_is_asked_without(
    serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """As mlx_lm.server does where ``top_k`` is negative: all is answered, and it is no outage."""
    server = serve()
    server.script = lambda p: "drop" if p.get("top_k", 0) < 0 else None
    engine = make_engine(server.url, added_params=NEUTRAL, concurrency=4)
    asked = engine.submit([_asks(f"prompt {i}") for i in range(40)]).result(timeout=30)
    assert [one.value for one in asked] == [scripted_reply(f"prompt {i}") for i in range(40)]
    assert engine.meter.retried.total() == 0
    assert server.counts.n_requests <= 40 + 8
    assert len([line for line in logged if "are sent without" in line]) == 1


def test_replies_are_stored_under_what_was_asked(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """What was stored before they were sent serves later runs, and the other way round."""
    server = serve()
    chains = [_asks(f"prompt {i}") for i in range(10)]
    make_engine(server.url).submit(chains[:5]).result(timeout=30)
    with_them = make_engine(server.url, added_params=NEUTRAL).submit(chains).result(timeout=30)
    without = make_engine(server.url).submit(chains).result(timeout=30)
    assert server.counts.n_requests == 10
    assert [one.cached for one in with_them] == [True] * 5 + [False] * 5
    assert all(one.cached for one in without)


def test_a_protocols_own_value_wins(serve: ServerFactory, make_engine: EngineFactory) -> None:
    """What a request sets itself is sent as it is, once."""
    server = serve()
    server.keep_bodies = True
    engine = make_engine(server.url, added_params=NEUTRAL)
    engine.submit([_asks("a", top_p=0.9, min_p=0.1)]).result(timeout=30)
    assert _explicit(server.bodies[0]) == {**NEUTRAL, "top_p": 0.9, "min_p": 0.1}


def test_a_seed_that_is_refused_leaves_them_in(
    serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """A server that refuses something else is sent them all the same."""
    server = serve(refuses_seed=True)
    server.keep_bodies = True
    engine = make_engine(server.url, added_params=NEUTRAL, concurrency=1)
    asked = engine.submit([_asks(f"prompt {i}") for i in range(5)]).result(timeout=30)
    assert {one.usage.refused for one in asked} == {("seed",)}
    assert all(_explicit(body) == dict(NEUTRAL) for body in server.bodies)
    assert not [line for line in logged if "is asked without top_p" in line]


@pytest.mark.parametrize(
    ("url", "is_own"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://localhost:8000/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://10.1.2.3/v1", True),
        ("http://192.168.0.5:11434/v1", True),
        ("http://172.20.1.1/v1", True),
        ("http://100.101.102.103/v1", True),
        ("http://[fd12::7]:80/v1", True),
        ("http://vllm:8000/v1", True),
        ("http://gpu-node-3/v1", True),
        ("http://desk.local:1234/v1", True),
        ("http://host.docker.internal:8000/v1", True),
        ("http://localhost.:8000/v1", True),
        ("http://vllm.:8000/v1", True),
        ("http://[::ffff:10.0.0.7]:8000/v1", True),
        ("http://[::ffff:8.8.8.8]/v1", False),
        ("https://api.openai.com/v1", False),
        ("https://openrouter.ai/api/v1", False),
        ("http://8.8.8.8/v1", False),
        ("http://[2606:4700::1111]/v1", False),
        ("http://172.32.1.1/v1", False),
    ],
)
def test_a_server_of_ones_own_is_known_by_its_address(url: str, is_own: bool) -> None:
    """What the internet does not route, and bare names; several are where all of them are."""
    assert is_self_hosted(url) is is_own
    assert bool(added_params([url])) is is_own
    assert bool(added_params([url, "http://127.0.0.1/v1"])) is is_own
