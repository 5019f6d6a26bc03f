"""Anthropic's messages API: what is sent, what is read, and which failure is which."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anthropic_server import KEY, Answer, AnthropicServer, error, message
from chains import chain, request_of
from conftest import EngineFactory
from lmms_eval_captions.cli.doctor import judge_findings
from lmms_eval_captions.judges.endpoint.client import listed_models
from lmms_eval_captions.judges.endpoint.dialects import ANTHROPIC
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.failures import Source
from lmms_eval_captions.judges.endpoint.request import Asked, Message, Picture
from lmms_eval_captions.judges.errors import JudgeRequestError, SettingsError
from lmms_eval_captions.judges.protocols.prompt import attach_pictures
from lmms_eval_captions.judges.settings import read_settings

NOT_SENT = ("seed",)


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    """A server that says yes."""
    with AnthropicServer(lambda _: message("yes")) as running:
        yield running


def _engine(make_engine: EngineFactory, server: AnthropicServer, **settings: Any) -> Engine:
    return make_engine(server.url, **{"api": "anthropic", "api_key": KEY, **settings})


def _ask(engine: Engine, *texts: str, **settings: Any) -> list[Asked[str]]:
    return engine.submit([chain(text, **settings) for text in texts]).result(timeout=30)


def _in_turn(*answers: Answer) -> Any:
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_a_question_is_asked_as_the_api_wants_it(
    server: AnthropicServer, make_engine: EngineFactory
) -> None:
    """The system's words apart, a length, no seed; tokens are counted, what is left out is told."""
    messages: list[Message] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is it?"},
    ]
    params = {"temperature": 0.0, "max_tokens": 8, "logprobs": True, "top_logprobs": 20}
    [asked] = _ask(_engine(make_engine, server), "", messages=messages, params=params)
    assert (asked.value, asked.reason) == ("yes", None)
    assert asked.usage.input_tokens == 90
    assert asked.usage.output_tokens == 1
    assert asked.usage.refused == ("seed", "logprobs")
    assert server.payloads == [
        {
            "model": "judge",
            "max_tokens": 8,
            "temperature": 0.0,
            "system": "Be brief.",
            "messages": [{"role": "user", "content": "Is it?"}],
        }
    ]
    assert server.refused == []


def test_a_picture_is_a_block_of_base64(
    server: AnthropicServer, make_engine: EngineFactory
) -> None:
    words: list[Message] = [{"role": "user", "content": "What is it?"}]
    shown = attach_pictures(words, Picture(b"abc", "image/png"))
    [asked] = _ask(_engine(make_engine, server), "", messages=shown)
    assert asked.value == "yes"
    blocks = server.payloads[0]["messages"][0]["content"]
    source = {"type": "base64", "media_type": "image/png", "data": "YWJj"}
    assert {"type": "image", "source": source} in blocks
    assert {"type": "text", "text": "What is it?"} in blocks


def test_a_video_is_not_sent() -> None:
    """The API takes none: a clear error, that no picture is meant, before anything is sent."""
    part = {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}}
    request = request_of("", messages=[{"role": "user", "content": [part]}])
    with pytest.raises(JudgeRequestError, match="does not support video input"):
        ANTHROPIC.encode(request, 0)


def test_a_rerun_sends_nothing(server: AnthropicServer, make_engine: EngineFactory) -> None:
    """Replies are stored as those of any judge, with what was left out."""
    _ask(_engine(make_engine, server), "a", "b")
    again = _ask(_engine(make_engine, server), "a", "b")
    assert all(asked.cached and asked.usage.refused == NOT_SENT for asked in again)
    assert len(server.payloads) == 2


def test_a_fresh_sample_is_warmer(server: AnthropicServer, make_engine: EngineFactory) -> None:
    """Without a seed, an unreadable reply is asked again at a temperature above 0."""
    server.script = _in_turn(message(""), message("yes"))
    assert _ask(_engine(make_engine, server), "a")[0].value == "yes"
    assert [payload["temperature"] for payload in server.payloads] == [0.0, 0.7]


@pytest.mark.parametrize(
    ("first", "waits_s"),
    [
        pytest.param(error(429, "rate_limit_error", "slow down", retry_after="1"), 1.0, id="429"),
        pytest.param(error(529, "overloaded_error", "Overloaded"), 0.0, id="529"),
        pytest.param(error(500, "api_error", "Internal server error"), 0.0, id="500"),
        pytest.param(
            (200, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, {}),
            0.0,
            id="529-within-200",
        ),
        pytest.param((200, {"type": "message", "content": None}, {}), 0.0, id="another-shape"),
    ],
)
def test_what_can_pass_is_tried_again(
    first: Answer, waits_s: float, server: AnthropicServer, make_engine: EngineFactory
) -> None:
    """A rate after the time that it names, an overload after ours."""
    server.script = _in_turn(first, message("yes"))
    engine = _engine(make_engine, server)
    started_s = time.monotonic()
    [asked] = _ask(engine, "a")
    assert asked.value == "yes"
    assert time.monotonic() - started_s >= waits_s
    assert len(server.payloads) == 2
    assert engine.meter.retried["HTTP 429"] == (waits_s > 0)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (error(401, "authentication_error", "invalid x-api-key"), "check ANTHROPIC_API_KEY"),
        (error(404, "not_found_error", "model: judge"), "check the model's name"),
        (
            error(400, "invalid_request_error", "Your credit balance is too low to access"),
            "nothing left to pay with",
        ),
        (
            (429, {"error": {"details": {"error_code": "enforced_spend_limit_reached"}}}, {}),
            "nothing left to pay with",
        ),
    ],
    ids=["401", "404", "credit", "spend-limit"],
)
def test_what_cannot_pass_stops_judging_at_once(
    answer: Answer, words: str, server: AnthropicServer, make_engine: EngineFactory
) -> None:
    """With the server's own words and what to do."""
    server.script = lambda _: answer
    engine = _engine(make_engine, server, concurrency=1)
    asked = _ask(engine, "a", "b", "c")
    assert all(words in str(one.reason) for one in asked)
    assert len(server.payloads) == 1


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (message("", "refusal"), "withheld by the provider's content filter"),
        (message("The answer i", "max_tokens"), "cut at max_tokens"),
    ],
    ids=["refusal", "cut"],
)
def test_a_refusal_and_a_cut_reply_are_told_as_elsewhere(
    answer: Answer, hint: str, server: AnthropicServer, make_engine: EngineFactory
) -> None:
    """A reply that cannot be read is asked again, then unscored with the reason."""
    server.script = lambda _: answer
    [asked] = _ask(_engine(make_engine, server), "a", read=lambda _: None)
    assert asked.value is None
    assert hint in str(asked.reason)
    assert len(server.payloads) == 4


def test_a_refused_request_costs_itself_alone(
    server: AnthropicServer, make_engine: EngineFactory
) -> None:
    """A 400 about one prompt is no matter of the others."""
    refused = error(400, "invalid_request_error", "prompt is too long: 200001 tokens")
    server.script = lambda p: refused if p["messages"][0]["content"] == "b" else message("yes")
    asked = _ask(_engine(make_engine, server), "a", "b", "c")
    assert [one.value for one in asked] == ["yes", None, "yes"]
    assert "prompt is too long" in str(asked[1].reason)


def test_a_temperature_that_a_model_does_not_take_is_left_out(
    server: AnthropicServer, make_engine: EngineFactory
) -> None:
    """Newer models refuse it: said once, in the signature, and all is answered."""
    refusal = error(400, "invalid_request_error", "`temperature` is deprecated for this model.")
    server.script = lambda p: refusal if "temperature" in p else message("yes")
    engine = _engine(make_engine, server, concurrency=1)
    asked = _ask(engine, "a", "b")
    assert {one.usage.refused for one in asked} == {("seed", "temperature")}
    assert len(server.payloads) == 3


def test_another_models_reply_stops_judging(
    server: AnthropicServer, make_engine: EngineFactory
) -> None:
    """The name in the reply is checked; a dated one of the same model is the same."""
    server.script = lambda _: message("yes", model="judge-20250514")
    assert _ask(_engine(make_engine, server), "a")[0].usage.served == ("judge-20250514",)
    server.script = lambda _: message("yes", model="claude-haiku")
    assert "answered as 'claude-haiku'" in str(_ask(_engine(make_engine, server), "b")[0].reason)


def test_tokens_of_the_cache_count_as_input(
    server: AnthropicServer, make_engine: EngineFactory
) -> None:
    usage = {
        "input_tokens": 20,
        "cache_creation_input_tokens": 50,
        "cache_read_input_tokens": 30,
        "output_tokens": 7,
    }
    server.script = lambda _: message("yes", usage=usage)
    [asked] = _ask(_engine(make_engine, server), "a")
    assert (asked.usage.input_tokens, asked.usage.output_tokens) == (100, 7)


@pytest.mark.parametrize(
    ("n_read", "n_cached", "n_input"),
    [(30, 30, 100), (0, 0, 70), (None, 0, 70), (-5, 0, 70), ("30", 0, 70), (3.5, 0, 70)],
)
def test_what_was_read_from_the_cache_is_counted(
    n_read: object, n_cached: int, n_input: int
) -> None:
    """Their count of the input is without it, ours is with it; odd counts are ignored."""
    usage = {
        "input_tokens": 20,
        "cache_creation_input_tokens": 50,
        "cache_read_input_tokens": n_read,
        "output_tokens": 7,
    }
    body = {"content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn", "usage": usage}
    reply = ANTHROPIC.read_reply(json.dumps(body).encode(), Source("http://host", None))
    assert (reply.text, reply.input_tokens, reply.cached_tokens) == ("yes", n_input, n_cached)


def test_thinking_is_no_part_of_the_text() -> None:
    body = (
        b'{"content":[{"type":"thinking","thinking":"no?"},{"type":"text","text":"yes"}],'
        b'"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}'
    )
    reply = ANTHROPIC.read_reply(body, Source("http://host/v1/messages", None))
    assert (reply.text, reply.finish_reason, reply.is_estimated) == ("yes", "stop", False)


def test_an_echoed_key_is_written_nowhere(
    server: AnthropicServer, make_engine: EngineFactory, tmp_path: Path, logged: list[str]
) -> None:
    """Neither in replies nor in errors, names, the store or the log."""
    server.script = _in_turn(
        error(500, "api_error", f"your key is {KEY}"), message(f"yes {KEY}", model=f"m {KEY}")
    )
    right = _ask(_engine(make_engine, server), "a")
    wrong = _ask(_engine(make_engine, server, api_key=f"{KEY}-wrong"), "b", "c")
    server.script = lambda _: error(400, "invalid_request_error", f"bad header: {KEY}")
    refused = _ask(_engine(make_engine, server), "d")
    assert right[0].value == "yes [key]"
    assert "401" in str(wrong[0].reason)
    assert "[key]" in str(refused[0].reason)
    texts = [str(right), str(wrong), str(refused), *logged]
    texts += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in texts if KEY in text]


def test_the_models_are_listed(server: AnthropicServer) -> None:
    for url in (server.url, f"{server.url}/v1"):
        assert asyncio.run(listed_models(url, KEY, api="anthropic")) == ("judge",)


def test_settings_of_the_api() -> None:
    env = {"LMMS_CAPTIONS_JUDGE_API": "anthropic", "ANTHROPIC_API_KEY": KEY}
    settings = read_settings({**env, "OPENAI_API_KEY": "other", "OPENAI_BASE_URL": "http://o/v1"})
    assert settings.endpoint.api_key == KEY
    assert settings.endpoint.urls == ("https://api.anthropic.com",)
    settings.require_judge_access()
    with pytest.raises(SettingsError, match="ANTHROPIC_API_KEY is not set"):
        read_settings({"LMMS_CAPTIONS_JUDGE_API": "anthropic"}).require_judge_access()
    with pytest.raises(SettingsError, match="LMMS_CAPTIONS_JUDGE_MODE"):
        read_settings({**env, "LMMS_CAPTIONS_JUDGE_MODE": "batch"})


def test_doctor_asks_and_lists_at_the_api(server: AnthropicServer) -> None:
    """It says that the judge answers, and that it is among the models."""
    env = {"LMMS_CAPTIONS_JUDGE_API": "anthropic", "ANTHROPIC_API_KEY": KEY}
    env |= {"LMMS_CAPTIONS_JUDGE": "judge", "LMMS_CAPTIONS_JUDGE_URL": server.url}
    findings = asyncio.run(judge_findings(read_settings(env)))
    assert all(finding.status == "ok" for finding in findings)
    assert "answers: 'yes'" in findings[0].text
    assert "judge is among them" in findings[1].text
