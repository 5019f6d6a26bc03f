"""Requests over HTTP: one call in, one reply or one classified error out.

The official SDK costs 2-3 ms of CPU a call, a bare aiohttp session a tenth of that, and a full VDC
is 193,650 calls: so the hot path is a bare session.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import aiohttp
from loguru import logger
from yarl import URL

from lmms_eval_captions.judges.endpoint.answers.tokens import counted
from lmms_eval_captions.judges.endpoint.dialects.apis import DIALECTS
from lmms_eval_captions.judges.endpoint.http.no_reply import no_reply
from lmms_eval_captions.judges.endpoint.http.wire import (
    OutOfStepError,
    RequestNames,
    open_session,
    read_answer,
    timeout_of,
)
from lmms_eval_captions.judges.endpoint.limits import AddressLimits
from lmms_eval_captions.judges.endpoint.replicas import Replicas
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.roles import Api, Role
from lmms_eval_captions.judges.endpoint.urls import endpoint_name, proxy_of, redact_url
from lmms_eval_captions.judges.errors import JudgeUnavailableError

_DOWN_FOR_S: Final = 10.0


@dataclass(slots=True)
class _Replica:
    index: int
    """Among the replicas."""
    name: str
    """Of its replies' endpoint."""
    url: str
    parsed: URL
    proxy: str | None
    session: aiohttp.ClientSession
    limits: AddressLimits
    left: list[aiohttp.ClientSession] = field(default_factory=list)
    """Sessions whose connections are used no more."""


class ChatClient:
    """An endpoint with one or more replicas; must be made inside the event loop.

    Args:
        urls: Base URLs, e.g. ``http://127.0.0.1:8000/v1``; replicas of one another.
        api_key: The endpoint's key or ``None``.
        role: What is asked, for messages.
        api: Whose API it speaks.
        limits: What each of the URLs says of its limits, in their order; by default known here
            alone.
        loads: How busy each of the URLs is, for those who want to know; by default its own.
    """

    def __init__(
        self,
        urls: tuple[str, ...],
        api_key: str | None,
        *,
        role: Role = "judge",
        api: Api = "openai",
        limits: Sequence[AddressLimits] = (),
        loads: Replicas | None = None,
    ) -> None:
        self._dialect = DIALECTS[api]
        self._api_key = api_key
        self._role = role
        self._names = RequestNames()
        self._headers = {"Content-Type": "application/json", **self._dialect.headers(api_key)}
        # aiohttp's ``trust_env`` asks a thread for the proxy at every call, and refuses to send our
        # key where a .netrc names the host.
        self._replicas = [
            _Replica(
                index=index,
                name=endpoint_name(url),
                url=(goal := self._dialect.completions_url(url)),
                parsed=URL(goal),
                proxy=proxy_of(url),
                session=open_session(self._headers),
                limits=limits_of_url,
            )
            for index, (url, limits_of_url) in enumerate(
                zip(urls, limits or [AddressLimits() for _ in urls], strict=True)
            )
        ]
        self._loads = loads or Replicas([replica.name for replica in self._replicas])

    async def complete(
        self,
        request: Request,
        attempt: int,
        *,
        timeout_s: float,
    ) -> Reply:
        """Send one request to the replica of its caption, or to the one that is least busy.

        See :class:`.request.Client`.
        """
        body = self._dialect.encode(request, attempt)
        loads, now_s = self._loads, time.monotonic()
        replica = self._replicas[self._choose(request.about, now_s)]
        number = replica.limits.send()
        loads.in_flight[replica.index] += 1
        try:
            status, headers, raw = await self._post(replica, body, timeout_s)
        finally:
            loads.in_flight[replica.index] -= 1
        if status == 200:
            loads.answered(replica.index)
            replica.limits.hear_answer(headers, number, time.monotonic())
            reply = self._dialect.read_reply(raw, replica.url, self._api_key, role=self._role)
            return counted(replace(reply, endpoint=replica.name), request, attempt)
        if status >= 500:
            # What fails at once is the least busy of all: it must not draw every request.
            loads.failed(replica.index, time.monotonic() + _DOWN_FOR_S)
        error = self._dialect.failure(
            status, raw, replica.url, headers=headers, api_key=self._api_key, role=self._role
        )
        if isinstance(error, JudgeUnavailableError) and error.rate_limited:
            error.told_limit = replica.limits.hear_refusal(
                headers, number, time.monotonic(), error.retry_after_s
            )
        raise error

    def _choose(self, about: bytes | None, now_s: float) -> int:
        """The replica that a request about a caption is sent to."""
        replicas, loads = self._replicas, self._loads
        if len(replicas) == 1:
            return 0
        first = loads.choose(about, now_s)
        if replicas[first].limits.wait_s(now_s) <= 0.0:
            return first
        # What an address allows comes before what it may have in its cache.
        return min(
            range(len(replicas)),
            key=lambda i: (
                loads.is_down(i, now_s),
                max(0.0, replicas[i].limits.wait_s(now_s)),
                loads.in_flight[i],
            ),
        )

    async def close(self) -> None:
        """Close every connection."""
        for replica in self._replicas:
            for session in (*replica.left, replica.session):
                await session.close()

    async def _post(
        self, replica: _Replica, body: bytes, timeout_s: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        try:
            return await self._once(replica, body, timeout_s)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            if isinstance(error, OutOfStepError) and not replica.left:
                self._leave(replica, error)
            self._loads.failed(replica.index, time.monotonic() + _DOWN_FOR_S)
            raise no_reply(
                error, replica.url, timeout_s=timeout_s, api_key=self._api_key
            ) from error

    async def _once(
        self, replica: _Replica, body: bytes, timeout_s: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        session, name = replica.session, self._names.draw(body)
        async with session.post(
            replica.parsed,
            data=body,
            headers={RequestNames.HEADER: name},
            timeout=timeout_of(timeout_s),
            proxy=replica.proxy,
            allow_redirects=False,
        ) as response:
            raw = await read_answer(response)
        if self._names.is_of_another(name, response, raw):
            raise OutOfStepError("the server sent the answer to another request")
        if session is not replica.session:
            raise OutOfStepError("the server was out of step when this answer came")
        return response.status, response.headers, raw

    def _leave(self, replica: _Replica, error: OutOfStepError) -> None:
        """Use no connection to a replica twice, and none of those that are there."""
        logger.warning(
            "{}: {}; so as not to take it for the answer to something else, each request has a "
            "connection of its own from here on, and those under way are sent again",
            redact_url(replica.url),
            error,
        )
        replica.left.append(replica.session)
        replica.session = open_session(self._headers, reuse=False)
