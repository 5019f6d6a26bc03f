"""Completions with their ids, which the engine does not keep: cached replies repeat them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import aiohttp
from yarl import URL

from lmms_eval_captions.judges.endpoint.answers.completion import NOT_READABLE, decode, model_in
from lmms_eval_captions.judges.endpoint.dialects.apis import DIALECTS
from lmms_eval_captions.judges.endpoint.http.no_reply import no_reply
from lmms_eval_captions.judges.endpoint.http.wire import open_session, read_answer
from lmms_eval_captions.judges.endpoint.redaction import answer_text
from lmms_eval_captions.judges.endpoint.refused_parameters import RefusedParameters
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.roles import WORDS, Api
from lmms_eval_captions.judges.endpoint.urls import proxy_of, redact_url
from lmms_eval_captions.judges.errors import JudgeStoppedError, JudgeUnavailableError

_MOST_NAME: Final = 200
"""Characters of an id."""
_WAITS_S: Final = (0.5, 2.0, 8.0)
"""Before a request is sent again that was answered 429 or 5xx."""
_MOST_WAIT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class CompletionHead:
    """A completion's reply, model and id."""

    reply: Reply
    model: str | None
    """``None``, here and below, if the completion does not have it."""
    id: str | None


async def completion_heads(
    url: str, requests: Sequence[Request], *, api_key: str | None, api: Api = "openai"
) -> list[CompletionHead]:
    """The heads of the answers to requests, which are sent one after the other, each once.

    Args:
        url: Base URL, e.g. ``http://127.0.0.1:8000/v1``.
        requests: What is asked.
        api_key: The endpoint's key or ``None``.
        api: Whose API it speaks.

    Raises:
        JudgeError: If one of them has no answer.
    """
    dialect = DIALECTS[api]
    goal = dialect.completions_url(url)
    headers = {"Content-Type": "application/json", **dialect.headers(api_key)}
    heads: list[CompletionHead] = []
    refused = RefusedParameters(WORDS["judge"], dialect.not_taken)
    async with open_session(headers) as session:

        async def send(request: Request) -> Reply:
            body = dialect.encode(request, 0)
            timeout = aiohttp.ClientTimeout(total=request.timeout_s)
            try:
                async with session.post(
                    URL(goal), data=body, proxy=proxy_of(url), timeout=timeout,
                    allow_redirects=False,
                ) as answer:  # fmt: skip
                    status, raw, named = answer.status, await read_answer(answer), answer.headers
            except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
                raise no_reply(error, goal, timeout_s=request.timeout_s, api_key=api_key) from error
            if status != 200:
                raise dialect.failure(status, raw, goal, headers=named, api_key=api_key)
            reply = dialect.read_reply(raw, goal, api_key)
            heads.append(_head(raw, reply, api_key, url))
            return reply

        for request in requests:
            await refused.send(request, 0, send=partial(_patiently, send))
    return heads


async def _patiently(send: Callable[[Request], Awaitable[Reply]], request: Request) -> Reply:
    """The reply to a request, which is sent again where the endpoint has too much to do.

    Raises:
        JudgeError: That of the last try.
    """
    for wait_s in _WAITS_S:
        try:
            return await send(request)
        except JudgeUnavailableError as error:
            if not error.rate_limited and error.status is None:
                raise
            await asyncio.sleep(min(error.retry_after_s or wait_s, _MOST_WAIT_S))
    return await send(request)


def heads_of(
    url: str, requests: Sequence[Request], *, api_key: str | None, api: Api = "openai"
) -> list[CompletionHead]:
    """As :func:`completion_heads`, for who has no event loop.

    Raises:
        JudgeStoppedError: If the endpoint does not answer; the text says what it said, or why.
    """
    try:
        return asyncio.run(completion_heads(url, requests, api_key=api_key, api=api))
    except JudgeUnavailableError as error:
        raise JudgeStoppedError(
            f"the judge at {redact_url(url)} does not answer: {error}; start it, or check "
            "LMMS_CAPTIONS_JUDGE_URL (`lmms-eval-captions doctor` looks at it)"
        ) from error


def _head(raw: bytes, reply: Reply, api_key: str | None, url: str) -> CompletionHead:
    payload: object = {}
    try:
        payload = decode(answer_text(raw, api_key, url, strictly=True))
    except NOT_READABLE:  # a text that could be read stands in it all the same
        payload = {}
    fields: Mapping[str, object] = payload if isinstance(payload, dict) else {}
    name = fields.get("id")
    return CompletionHead(
        reply=reply,
        model=model_in(fields),
        id=name[:_MOST_NAME] if isinstance(name, str) and name else None,
    )
