"""What stands around the text of a completion."""

from __future__ import annotations

import pytest

from conftest import ServerFactory
from judge_server import JudgeServer, Say
from lmms_eval_captions.judges.endpoint.http.completion_head import CompletionHead, heads_of
from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.judges.errors import JudgeStoppedError


def _request(seed: int = 0) -> Request:
    return Request(
        protocol="probe:1",
        model="judge",
        messages=[{"role": "user", "content": "Reply with the word ready."}],
        params={"temperature": 0, "max_tokens": 16},
        seed=seed,
        timeout_s=10.0,
        stand_in=lambda: "",
    )


def _server(serve: ServerFactory, **extra: object) -> JudgeServer:
    server = serve()
    server.script = lambda _: Say("ready", model="judge-1", extra=extra)
    return server


def test_each_answer_has_its_head(serve: ServerFactory) -> None:
    """Text, model, id and date, of requests that are sent one after the other."""
    server = _server(serve, id="cmpl-1", created=1_760_000_000)
    heads = heads_of(server.url, [_request(0), _request(1)], api_key=None)
    assert heads == [CompletionHead("ready", "judge-1", "cmpl-1", 1_760_000_000)] * 2
    assert server.counts.most_in_flight == 1


@pytest.mark.parametrize("extra", [{}, {"id": 7, "created": "today"}, {"id": "", "created": True}])
def test_what_is_missing_or_odd_is_none(serve: ServerFactory, extra: dict[str, object]) -> None:
    """A reply counts as long as its text can be read."""
    (head,) = heads_of(_server(serve, **extra).url, [_request()], api_key=None)
    assert (head.text, head.id, head.created) == ("ready", None, None)


def test_parameters_that_are_refused_are_left_out(serve: ServerFactory) -> None:
    """As the engine does."""
    server = _server(serve)
    server.behaviour.refuses_parameters = server.behaviour.refuses_seed = True
    (head,) = heads_of(server.url, [_request()], api_key=None)
    assert head.text == "ready"


def test_an_endpoint_that_is_not_there_is_told_with_what_to_do() -> None:
    """The address, and where to look."""
    with pytest.raises(JudgeStoppedError, match=r"127\.0\.0\.1:9.*LMMS_CAPTIONS_JUDGE_URL"):
        heads_of("http://127.0.0.1:9/v1", [_request()], api_key=None)


def test_a_key_that_the_server_repeats_is_not_told(serve: ServerFactory) -> None:
    """Neither in a head nor in an error."""
    server = _server(serve, id="id-of-sk-secret-key-0123456789abcdef")
    (head,) = heads_of(server.url, [_request()], api_key="sk-secret-key-0123456789abcdef")
    assert "sk-secret-key-0123456789abcdef" not in repr(head)
    server.behaviour.key = "sk-right"
    with pytest.raises(JudgeStoppedError) as error:
        heads_of(server.url, [_request()], api_key="sk-secret-key-0123456789abcdef")
    assert "sk-secret-key-0123456789abcdef" not in str(error.value)
    assert "401" in str(error.value)
