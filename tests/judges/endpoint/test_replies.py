"""Answers: their text counts, and their tokens never open a limit."""

from __future__ import annotations

import asyncio
import json
from math import isfinite

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chains import request_of
from conftest import EngineFactory
from lmms_eval_captions.judges.endpoint.cost import Budget, load_prices
from lmms_eval_captions.judges.endpoint.dialects import OPENAI
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.failures import Source
from lmms_eval_captions.judges.endpoint.progress import Meter, parts_of
from lmms_eval_captions.judges.endpoint.replies import counted
from lmms_eval_captions.judges.endpoint.request import Asked, Message, Reply, Request
from lmms_eval_captions.judges.errors import (
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
)
from raw_server import Asked as Sent
from raw_server import RawServer, completion, http

_URL = "http://127.0.0.1/v1"
SOURCE = Source(_URL)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
_LOGPROB = st.fixed_dictionaries(
    {},
    optional={
        "token": _JSON | st.sampled_from(["8", "5", "85"]),
        "logprob": _JSON | st.just(10**400),
        "bytes": _JSON | st.lists(st.integers(-2, 300), max_size=3),
        "top_logprobs": _JSON
        | st.lists(st.fixed_dictionaries({"token": _JSON, "logprob": _JSON}), max_size=3),
    },
)


def _read(choice: dict[str, object], **fields: object) -> Reply:
    return OPENAI.read_reply(json.dumps({"choices": [choice], **fields}).encode(), SOURCE)


def _error(payload: object) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        OPENAI.read_reply(json.dumps(payload).encode(), SOURCE)
    return caught.value


_ODD_USAGES = [
    pytest.param("[1, 2]", id="list"),
    pytest.param('{"prompt_tokens": NaN, "completion_tokens": NaN}', id="nan"),
    pytest.param('{"prompt_tokens": -5, "completion_tokens": -5}', id="negative"),
    pytest.param('{"prompt_tokens": 1e300, "completion_tokens": 1e300}', id="huge"),
]


@pytest.mark.parametrize("usage", _ODD_USAGES)
def test_a_good_reply_with_an_odd_usage_counts(usage: str) -> None:
    choices = '[{"message":{"content":"yes"},"finish_reason":"stop"}]'
    raw = f'{{"choices":{choices},"usage":{usage}}}'
    reply = OPENAI.read_reply(raw.encode(), SOURCE)
    assert (reply.text, reply.finish_reason, reply.is_estimated) == ("yes", "stop", True)
    for n_tokens in (reply.input_tokens, reply.output_tokens):
        assert type(n_tokens) is int
        assert 0 <= n_tokens <= 10_000_000


def test_an_honest_usage_is_taken_as_it_is() -> None:
    """Whole numbers, also those written as 12.0, are the endpoint's own count."""
    usage = {"prompt_tokens": 12, "completion_tokens": 3.0}
    reply = _read({"message": {"content": "yes"}}, usage=usage)
    assert (reply.input_tokens, reply.output_tokens, reply.is_estimated) == (12, 3, False)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param([{"type": "text", "text": "yes"}], "yes", id="part"),
        pytest.param(
            [{"type": "text", "text": "ye"}, {"type": "text", "text": "s"}], "yes", id="parts"
        ),
        pytest.param(["ye", "s"], "yes", id="strings"),
        pytest.param([{"type": "output_text", "text": "yes"}], "yes", id="output-text"),
        pytest.param([{"text": "yes"}], "yes", id="no-type"),
        pytest.param({"type": "text", "text": "yes"}, "yes", id="no-list"),
        pytest.param(
            [{"type": "thinking", "text": "no?"}, {"type": "text", "text": "yes"}, 5, None, []],
            "yes",
            id="others",
        ),
        pytest.param(None, "", id="null"),
        pytest.param([], "", id="no-parts"),
        pytest.param([{"type": "text", "text": {"value": "yes"}}], "", id="deeper"),
        pytest.param(5, "", id="number"),
    ],
)
def test_content_in_parts_is_text(content: object, text: str) -> None:
    assert _read({"message": {"content": content}}).text == text


def test_a_refusal_without_a_content_is_an_empty_reply() -> None:
    assert _read({"message": {"refusal": "I cannot help with that."}}).text == ""


@pytest.mark.parametrize("reason", [None, [], ["stop"], 5, {"a": 1}, True])
def test_a_reason_to_end_that_is_no_word_is_none(reason: object) -> None:
    """The reply is read all the same, and can be stored."""
    reply = _read({"message": {"content": "yes"}, "finish_reason": reason})
    assert (reply.text, reply.finish_reason) == ("yes", None)
    assert Reply.from_json(reply.to_json()).text == "yes"


@example({"content": [{"token": "85", "logprob": 10**308, "top_logprobs": [1]}]})
@example(
    {
        "content": [
            {"token": "85", "logprob": 10**309, "top_logprobs": []},
            {"token": "", "top_logprobs": True},
        ]
    }
)
@example(
    {
        "content": [
            {"token": "85", "logprob": -(10**350), "top_logprobs": [{"token": "8", "logprob": 0}]}
        ]
    }
)
@given(_JSON | st.fixed_dictionaries({"content": _JSON | st.lists(_LOGPROB, max_size=3)}))
def test_odd_log_probabilities_cost_no_reply(logprobs: object) -> None:
    """Whatever stands in their place, the text counts, and the store can read what was kept."""
    reply = _read({"message": {"content": "85"}, "logprobs": logprobs})
    assert reply.text == "85"
    assert Reply.from_json(reply.to_json()).text == "85"


@given(_JSON, _JSON, _JSON, _JSON)
def test_any_json_is_a_reply_or_a_classified_error(
    content: object, usage: object, reason: object, error: object
) -> None:
    """Nothing that a completion holds raises anything else."""
    choice = {"message": {"content": content}, "finish_reason": reason}
    for payload in (
        {"choices": [choice], "usage": usage, "error": error},
        {"choices": content, "usage": usage, "error": error},
        {"choices": [content], "error": error},
        error,
    ):
        try:
            reply = OPENAI.read_reply(json.dumps(payload).encode(), SOURCE)
        except JudgeError:
            continue
        Reply.from_json(reply.to_json())


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        pytest.param(
            {"message": "Slow down", "code": 429}, JudgeUnavailableError, "Slow", id="429"
        ),
        pytest.param({"message": "Slow", "code": "429"}, JudgeUnavailableError, "Slow", id="text"),
        pytest.param(
            {"message": "Slow", "type": "rate_limit_error"},
            JudgeUnavailableError,
            "Slow",
            id="type",
        ),
        pytest.param({"message": "Down", "code": 502}, JudgeUnavailableError, "Down", id="502"),
        pytest.param(
            {"message": "Busy", "type": "overloaded_error"}, JudgeUnavailableError, "Busy", id="529"
        ),
        pytest.param({"message": "No key", "code": 401}, JudgeStoppedError, "No key", id="401"),
        pytest.param({"message": "No", "code": 403}, JudgeStoppedError, "answered 200", id="403"),
        pytest.param({"message": "No model", "code": 404}, JudgeStoppedError, "No model", id="404"),
        pytest.param(
            {"message": "Pay", "code": "insufficient_quota"}, JudgeStoppedError, "Pay", id="quota"
        ),
        pytest.param({"message": "Too long", "code": 400}, JudgeRequestError, "Too long", id="400"),
        pytest.param(
            {"message": "Unknown parameter: 'seed'.", "code": 400},
            JudgeRequestError,
            "seed",
            id="parameter",
        ),
        pytest.param({"message": "Provider error"}, JudgeUnavailableError, "Provider", id="none"),
        pytest.param({"message": "Odd", "code": 7}, JudgeUnavailableError, "Odd", id="odd-code"),
        pytest.param({"message": "Odd", "code": True}, JudgeUnavailableError, "Odd", id="bool"),
        pytest.param("a word", JudgeUnavailableError, "a word", id="word"),
    ],
)
@pytest.mark.parametrize(
    "around",
    [
        pytest.param({}, id="alone"),
        pytest.param({"choices": []}, id="no-choices"),
        pytest.param({"choices": None}, id="null-choices"),
        pytest.param({"choices": [{"message": {"content": None}}]}, id="null-content"),
        pytest.param(
            {"choices": [{"message": {"content": "ye"}, "finish_reason": "error"}]}, id="broken-off"
        ),
    ],
)
def test_an_error_within_a_200_says_its_own_words(
    error: object, kind: type[JudgeError], words: str, around: dict[str, object]
) -> None:
    """It is what the status of its code or type would be; one that has neither can pass."""
    caught = _error({**around, "error": error})
    assert type(caught) is kind
    assert words in str(caught)
    if isinstance(caught, JudgeUnavailableError):
        assert caught.rate_limited == ("Slow" in words)


@pytest.mark.parametrize("code", [401, 402, 403, 404, "permission_denied"])
def test_an_error_within_a_choice_costs_its_own_request(code: int | str) -> None:
    """An input that a provider flags (403) is no reason to ask nothing more."""
    choice = {"message": {"content": ""}, "error": {"code": code, "message": "Flagged"}}
    caught = _error({"choices": [choice]})
    assert type(caught) is JudgeRequestError
    assert "Flagged" in str(caught)
    assert isinstance(_error({"choices": [choice], "error": choice["error"]}), JudgeStoppedError)


def test_an_error_beside_a_whole_text_leaves_the_reply() -> None:
    """A warning must not cost a good reply."""
    choice: dict[str, object] = {"message": {"content": "yes"}, "finish_reason": "stop"}
    assert _read(choice, error={"message": "deprecated"}).text == "yes"


_MODEL = "gpt-4o-2024-08-06"
_COUNT = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-5, 400)
    | st.floats()
    | st.text(max_size=4)
    | st.lists(st.integers(), max_size=2)
)
_USAGE = _COUNT | st.dictionaries(
    st.sampled_from(["prompt_tokens", "completion_tokens", "total_tokens"]), _COUNT
)


def _request(prompt: str) -> Request:
    return request_of(prompt, model=_MODEL, params={"max_tokens": 100})


def _reply(text: str, usage: object, request: Request) -> Reply:
    payload = {"choices": [{"message": {"content": text}}], "usage": usage}
    reply = OPENAI.read_reply(json.dumps(payload).encode(), Source("http://host/v1", None))
    return counted(reply, request, 0)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        pytest.param(None, (173, 3), id="none"),
        pytest.param({"prompt_tokens": -7, "completion_tokens": 2}, (173, 2), id="negative-input"),
        pytest.param({"prompt_tokens": 110, "completion_tokens": "2"}, (110, 3), id="text-output"),
        pytest.param({"prompt_tokens": 110, "completion_tokens": 0}, (110, 3), id="small-output"),
    ],
)
def test_an_odd_count_is_estimated(usage: object, tokens: tuple[int, int]) -> None:
    """At four letters per token, as the `estimate` command does; a count that can be is kept."""
    request = _request("words " * 98 + "words")
    assert len(request.body(0)) == 690
    reply = _reply("a reply", usage, request)
    assert (reply.input_tokens, reply.output_tokens, reply.is_estimated) == (*tokens, True)


_PROMPT_TOKENS = {"prompt_tokens": 110, "completion_tokens": 2}


def _details(value: object) -> dict[str, object]:
    return {**_PROMPT_TOKENS, "prompt_tokens_details": value}


@pytest.mark.parametrize(
    ("usage", "n_cached"),
    [
        pytest.param(_PROMPT_TOKENS, 0, id="nothing-said"),
        pytest.param(_details({"cached_tokens": 64}), 64, id="openai-vllm"),
        pytest.param({**_PROMPT_TOKENS, "prompt_cache_hit_tokens": 48}, 48, id="deepseek"),
        pytest.param(
            {**_details({"cached_tokens": 64}), "prompt_cache_hit_tokens": 48}, 64, id="both"
        ),
        pytest.param(
            {**_details({"cached_tokens": "?"}), "prompt_cache_hit_tokens": 48}, 48, id="one-is-odd"
        ),
        pytest.param(_details({"cached_tokens": 0}), 0, id="none-found"),
        pytest.param(_details({"cached_tokens": 64.0}), 64, id="whole"),
        pytest.param(_details({"cached_tokens": 111}), 110, id="more-than-asked"),
        pytest.param({"prompt_tokens_details": {"cached_tokens": 64}}, 0, id="of-no-input"),
    ],
)
def test_tokens_of_a_cache_are_read_and_odd_ones_cost_nothing(
    usage: dict[str, object], n_cached: int
) -> None:
    """The reply is there whatever is said; more than the input is never taken to be cached."""
    request = _request("words " * 98 + "words")
    reply = _reply("a reply", usage, request)
    assert (reply.text, reply.cached_tokens) == ("a reply", n_cached)
    assert reply.input_tokens == (110 if usage.get("prompt_tokens") == 110 else 173)


@given(st.recursive(_COUNT, lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=2)))
def test_whatever_stands_in_the_place_of_cached_tokens_the_reply_is_read(value: object) -> None:
    """A number of tokens in [0, input] comes of it."""
    for usage in (
        _details({"cached_tokens": value}),
        _details(value),
        {**_PROMPT_TOKENS, "prompt_cache_hit_tokens": value},
    ):
        reply = _reply("a reply", usage, _request("words " * 98 + "words"))
        assert reply.text == "a reply"
        assert type(reply.cached_tokens) is int
        assert 0 <= reply.cached_tokens <= reply.input_tokens == 110


@given(_USAGE, st.text(max_size=200), st.text(max_size=400))
def test_an_odd_usage_never_frees_money(usage: object, prompt: str, text: str) -> None:
    """An honest count is billed exactly, an odd one as the worst case at least."""
    request, prices = _request(prompt), load_prices()
    budget = Budget(1.0, prices)
    worst_usd = budget.worst_case_usd(request, 0)
    reply = _reply(text, usage, request)
    billed_usd = budget.billed_usd(request, 0, reply, worst_usd)
    exact_usd = prices.cost_usd(
        _MODEL, input_tokens=reply.input_tokens, output_tokens=reply.output_tokens
    )
    assert exact_usd is not None
    assert isfinite(billed_usd)
    assert billed_usd == (max(exact_usd, worst_usd) if reply.is_estimated else exact_usd)
    given_counts = usage if isinstance(usage, dict) else {}
    for n_tokens, name in (
        (reply.input_tokens, "prompt_tokens"),
        (reply.output_tokens, "completion_tokens"),
    ):
        assert type(n_tokens) is int
        assert n_tokens >= 0
        assert reply.is_estimated or n_tokens == given_counts[name]
    meter = Meter()
    meter.count_call(_MODEL, reply)
    n_in, n_out = reply.input_tokens, reply.output_tokens
    assert (f"tokens {n_in:,}+{n_out:,}" in parts_of(meter, [])) == (n_in + n_out > 0)


def _ask(engine: Engine, n: int) -> list[Asked[str]]:
    def request(index: int) -> Request:
        message: Message = {"role": "user", "content": f"prompt {index} " + "x" * 200}
        return Request("test:1", _MODEL, [message], {"max_tokens": 50}, 0, 5.0, str)

    chains = [
        lambda ask, index=index: ask(request(index), lambda reply: reply.text or None)
        for index in range(n)
    ]
    return engine.submit(chains).result(timeout=30)


@pytest.mark.parametrize(
    "usage", [[], "12", {"prompt_tokens": -9, "completion_tokens": float("nan")}, None]
)
def test_a_run_with_odd_usages_is_judged_counted_and_limited(
    usage: object, make_engine: EngineFactory
) -> None:
    """Over the wire: replies count, tokens are whole numbers above 0, and the limit holds."""
    n_served = 0

    async def answer(_: Sent, writer: asyncio.StreamWriter) -> None:
        nonlocal n_served
        n_served += 1
        writer.write(http(completion("yes", usage=usage)))

    with RawServer(answer) as server:
        engine = make_engine(server.url, max_cost_usd=0.02, concurrency=8)
        asked = _ask(engine, 60)
        n_judged = sum(one.value == "yes" for one in asked)
        assert 0 < n_judged == n_served < 60
        for one in asked:
            assert one.value == "yes" or "LMMS_CAPTIONS_MAX_COST" in str(one.reason)
        n_input, n_output = engine.meter.tokens[_MODEL]
        assert type(n_input) is type(n_output) is int
        assert n_input >= 60 * n_judged
        assert n_output >= n_judged


@pytest.mark.parametrize("code", [500, 503, 429, 400, None])
def test_an_error_after_tokens_were_counted_is_taken_as_billed(
    code: int | None, make_engine: EngineFactory
) -> None:
    """An answer of 200 that broke off, with its usage: however often, the limit holds."""
    n_served = 0
    error = {"message": "Provider is gone", "code": code}
    choice = {"message": {"content": ""}, "finish_reason": "error", "error": error}
    usage = {"prompt_tokens": 90, "completion_tokens": 40}
    content = json.dumps({"choices": [choice], "usage": usage}).encode()

    async def answer(_: Sent, writer: asyncio.StreamWriter) -> None:
        nonlocal n_served
        n_served += 1
        writer.write(http(content))

    with RawServer(answer) as server:
        engine = make_engine(server.url, max_cost_usd=0.005, concurrency=4)
        asked = _ask(engine, 40)
    assert not [one for one in asked if one.value is not None]
    assert n_served * (90 * 2.5 + 40 * 10.0) / 1e6 <= 0.005
    assert engine.spent_usd <= 0.005
