"""Questions of one request, for tests of the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Chain, Message, Reply, Request

PARAMS: Final[Mapping[str, object]] = MappingProxyType({"temperature": 0.0, "max_tokens": 8})
"""Parameters of a request whose test says nothing of them."""


def text_of(reply: Reply) -> str | None:
    return reply.text or None


def request_of(
    text: str,
    *,
    model: str = "judge",
    messages: Sequence[Message] | None = None,
    params: Mapping[str, object] = PARAMS,
    seed: int = 0,
    timeout_s: float = 5.0,
) -> Request:
    """A request of one message.

    Args:
        text: Words of the message.
        model: Name of the model.
        messages: In place of the text.
        params: Parameters of the request.
        seed: Of the first attempt.
        timeout_s: Seconds until the reply must be complete.
    """
    return Request(
        protocol="test:1",
        model=model,
        messages=list(messages or [{"role": "user", "content": text}]),
        params=dict(params),
        seed=seed,
        timeout_s=timeout_s,
        stand_in=lambda: "",
    )


def chain(
    text: str, *, read: Callable[[Reply], str | None] = text_of, **settings: Any
) -> Chain[Asked[str]]:
    """A question that is one request; settings are those of :func:`request_of`."""
    request = request_of(text, **settings)

    async def run(ask: Ask) -> Asked[str]:
        return await ask(request, read)

    return run
