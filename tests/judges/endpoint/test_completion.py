"""A reply counts as long as its text can be read, whatever stands beside it."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lmms_eval_captions.judges.endpoint.dialects import OPENAI
from lmms_eval_captions.judges.endpoint.failures import Source, failure
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.errors import (
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
)

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
    """Its text is read, its tokens are whole numbers, and it says that they are no count."""
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
    """As Mistral, and gateways to Anthropic's or Gemini's models, send it; null is empty."""
    assert _read({"message": {"content": content}}).text == text


def test_a_refusal_without_a_content_is_an_empty_reply() -> None:
    """As a null content is: unreadable, and asked again."""
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


def _retry_after(header: str) -> float | None:
    error = failure(429, b"{}", SOURCE, headers={"Retry-After": header})
    assert isinstance(error, JudgeUnavailableError)
    return error.retry_after_s


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("-inf", 0.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
)
def test_a_retry_after_that_can_be_is_honoured(header: str, wait_s: float) -> None:
    """Seconds or a date; what has passed is no wait."""
    assert _retry_after(header) == wait_s
