"""Bytes of requests and keys of the store: those of before, so that what is stored serves."""

from __future__ import annotations

from typing import Final

import pytest

from lmms_eval_captions.judges.endpoint.adapt import NEUTRAL
from lmms_eval_captions.judges.endpoint.dialects import ANTHROPIC, OPENAI
from lmms_eval_captions.judges.endpoint.request import Request

REQUEST: Final = Request(
    protocol="test:1",
    model="judge",
    messages=[{"role": "user", "content": "Is it \ud83d?"}],
    params={
        "temperature": 0.0,
        "max_tokens": 8,
        "logprobs": True,
        "top_logprobs": 20,
        "top_p": 0.9,
    },
    seed=1,
    timeout_s=5.0,
    stand_in=str,
)
START: Final = b'{"model":"judge","messages":[{"role":"user","content":"Is it \\ud83d?"}],'


@pytest.mark.parametrize(
    ("attempt", "rest", "key"),
    [
        pytest.param(
            0,
            b'"temperature":0.0,"max_tokens":8,"logprobs":true,"top_logprobs":20,"top_p":0.9,'
            b'"seed":1}',
            "769c18142e09c3f582e9b04701b62583",
            id="asked",
        ),
        pytest.param(
            2,
            b'"temperature":0.7,"max_tokens":8,"logprobs":true,"top_logprobs":20,"top_p":0.9,'
            b'"seed":2000007}',
            "03a8c65409c49b516b997c35a2e98f2d",
            id="asked-afresh",
        ),
    ],
)
def test_a_body_and_its_key_are_those_of_the_version_before(
    attempt: int, rest: bytes, key: str
) -> None:
    """Recorded before requests took the place of bytes."""
    body = REQUEST.body(attempt)
    assert body == OPENAI.encode(REQUEST, attempt) == START + rest
    assert REQUEST.key(attempt).hex() == key


def test_what_is_left_out_or_sent_beside_changes_the_wire_and_not_the_key() -> None:
    """On the wire to the byte as before; the key is that of the asking."""
    left_out = ("logprobs", "max_tokens", "seed")
    plain = REQUEST.sent_as(left_out)
    wire = START + b'"temperature":0.0,"top_p":0.9,"max_completion_tokens":8}'
    assert OPENAI.encode(plain, 0) == wire
    missing = {name: value for name, value in NEUTRAL.items() if name not in REQUEST.params}
    beside = REQUEST.sent_as(left_out, missing)
    assert OPENAI.encode(beside, 0) == (
        wire[:-1] + b',"top_k":-1,"min_p":0,"repetition_penalty":1,"repeat_penalty":1}'
    )
    assert beside.body(0) == REQUEST.body(0)


def test_a_model_name_at_two_apis_is_one_key() -> None:
    """Whose reply it is the model's name tells; the bytes on the wire differ."""
    assert ANTHROPIC.encode(REQUEST, 0) != OPENAI.encode(REQUEST, 0)
    assert ANTHROPIC.encode(REQUEST, 0) == (
        b'{"model":"judge","max_tokens":8,"temperature":0.0,"top_p":0.9,'
        b'"messages":[{"role":"user","content":"Is it \\ud83d?"}]}'
    )
