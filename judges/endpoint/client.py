"""Requests over HTTP: one call in, one reply or one classified error out.

The official SDK costs 2-3 ms of CPU a call, a bare aiohttp session a tenth of that, and a full VDC
is 193,650 calls.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from hashlib import blake2b
from math import ceil, floor
from typing import Any, Final

import aiohttp
from yarl import URL

from lmms_eval_captions.judges.endpoint.dialects import DIALECTS
from lmms_eval_captions.judges.endpoint.failures import (
    HINTS,
    MOST_WORDS,
    WORDS,
    Role,
    Source,
    failure,
)
from lmms_eval_captions.judges.endpoint.limits import AddressLimits
from lmms_eval_captions.judges.endpoint.replies import NOT_READABLE, counted
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.urls import endpoint_name, proxy_of, scrub
from lmms_eval_captions.judges.errors import (
    BROKEN_OFF,
    NOT_CONNECTED,
    JudgeError,
    JudgeStoppedError,
    JudgeUnavailableError,
)

CONNECT_TIMEOUT_S: Final = 20.0
MOST_BYTES: Final = 16 * 2**20
"""Largest answer; those of judges have some 300 KB at most."""
_MOST_ERROR_BYTES: Final = 2**16
_DOWN_FOR_S: Final = 10.0
_CERTIFICATE: Final = (
    "its certificate cannot be verified; if it is signed by your own authority, set SSL_CERT_FILE "
    "to that authority's certificate"
)


_BALANCE: Final = 1.1
"""Requests in flight that a replica may have, as a multiple of the mean."""


class Replicas:
    """Load and order of an endpoint's replicas."""

    def __init__(self, names: Sequence[str]) -> None:
        self.in_flight = [0] * len(names)
        self._keys = [blake2b(name.encode(), digest_size=16).digest() for name in names]
        self.down_until_s = [0.0] * len(names)
        """Until when each is sent nothing, as long as others are up."""
        self.order = lru_cache(maxsize=4096)(self._order)
        """Indices of all replicas in a caption's own order, by the caption's digest."""

    def __len__(self) -> int:
        return len(self.in_flight)

    def _order(self, about: bytes) -> tuple[int, ...]:
        keys = [blake2b(about, key=key, digest_size=16).digest() for key in self._keys]
        return tuple(sorted(range(len(self)), key=keys.__getitem__))

    def choose(self, about: bytes | None, now_s: float) -> int:
        """Index of the replica for one more request, one that is up if there is one."""
        everyone = range(len(self))
        up = [i for i in everyone if self.down_until_s[i] <= now_s] or everyone
        if about is not None:
            mean = (sum(self.in_flight[i] for i in up) + 1) / len(up)
            most = max(ceil(mean), floor(_BALANCE * mean))
            for index in self.order(about):
                if index in up and self.in_flight[index] < most:
                    return index
        return min(up, key=self.in_flight.__getitem__)


@dataclass(slots=True)
class _Replica:
    index: int
    url: URL
    proxy: str | None
    source: Source
    limits: AddressLimits


class ChatClient:
    """An endpoint with one or more replicas; must be made inside the event loop."""

    def __init__(
        self,
        urls: tuple[str, ...],
        api_key: str | None,
        role: Role = "judge",
        api: str = "openai",
        limits: Sequence[AddressLimits] = (),
        loads: Replicas | None = None,
    ) -> None:
        self._dialect = dialect = DIALECTS[api]
        words = WORDS[role]
        if role == "judge":
            words = replace(words, key=dialect.key_variables[0])
        self._session = _open_session(dialect.headers(api_key))
        self._replicas = []
        for index, url in enumerate(urls):
            source = Source(dialect.completions_url(url), api_key, words, endpoint_name(url))
            # aiohttp's ``trust_env`` asks a thread for the proxy at every call, and refuses to
            # send our key if a .netrc names the host.
            limit = limits[index] if limits else AddressLimits()
            full = URL(source.url, encoded=True)
            self._replicas.append(_Replica(index, full, proxy_of(url), source, limit))
        self._loads = loads or Replicas(list(map(endpoint_name, urls)))

    async def complete(self, request: Request, attempt: int, *, timeout_s: float) -> Reply:
        """See :class:`.request.Client`."""
        body = self._dialect.encode(request, attempt)
        loads, replicas = self._loads, self._replicas
        replica = replicas[0] if len(replicas) == 1 else self._choose(request.about)
        number = replica.limits.send()
        loads.in_flight[replica.index] += 1
        try:
            status, headers, raw = await self._post(replica, body, timeout_s)
        finally:
            loads.in_flight[replica.index] -= 1
        if status == 200:
            loads.down_until_s[replica.index] = 0.0
            replica.limits.hear_answer(headers, number, time.monotonic())
            return counted(self._dialect.read_reply(raw, replica.source), request, attempt)
        if status >= 500:
            # A replica that fails at once is the least busy: it must not draw every request.
            loads.down_until_s[replica.index] = time.monotonic() + _DOWN_FOR_S
        error = failure(status, raw, replica.source, headers=headers)
        if isinstance(error, JudgeUnavailableError) and error.rate_limited:
            error.told_limit = replica.limits.hear_refusal(
                headers, number, time.monotonic(), error.retry_after_s
            )
        raise error

    def _choose(self, about: bytes | None) -> _Replica:
        replicas, loads = self._replicas, self._loads
        now_s = time.monotonic()
        first = replicas[loads.choose(about, now_s)]
        if first.limits.wait_s(now_s) <= 0.0:
            return first
        # An address's limit matters more than its prefix cache.
        return min(
            replicas,
            key=lambda replica: (
                loads.down_until_s[replica.index] > now_s,
                max(0.0, replica.limits.wait_s(now_s)),
                loads.in_flight[replica.index],
            ),
        )

    async def _post(
        self, replica: _Replica, body: bytes, timeout_s: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        timeout, proxy = _timeout(timeout_s), replica.proxy
        try:
            async with self._session.post(
                replica.url, data=body, timeout=timeout, proxy=proxy, allow_redirects=False
            ) as response:
                return response.status, response.headers, await _read(response)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            self._loads.down_until_s[replica.index] = time.monotonic() + _DOWN_FOR_S
            # The library's own error may hold the key, and a traceback shows what it is from.
            raise no_reply(error, replica.source, timeout_s=timeout_s) from None

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()


async def listed_models(url: str, api_key: str | None, *, api: str = "openai") -> tuple[str, ...]:
    """Return the names of the models that an endpoint lists, with llama.cpp's aliases."""
    dialect = DIALECTS[api]
    source = Source(dialect.models_url(url), api_key)
    async with _open_session(dialect.headers(api_key)) as session:
        try:
            full, timeout = URL(source.url, encoded=True), _timeout(10.0)
            async with session.get(
                full, proxy=proxy_of(url), timeout=timeout, allow_redirects=False
            ) as answer:
                status, raw = answer.status, await _read(answer)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise no_reply(error, source, timeout_s=10.0) from None
    if status != 200:
        raise JudgeUnavailableError(f"{source.shown} answered {status}")
    try:
        listed: Any = json.loads(source.text(raw, strictly=True))
        entries = listed["data"]
        names = [name for entry in entries for name in (entry["id"], *(entry.get("aliases") or ()))]
    except NOT_READABLE as error:
        raise JudgeUnavailableError(f"{source.shown} answered without a list of models") from error
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def no_reply(error: Exception, source: Source, *, timeout_s: float) -> JudgeError:
    """Return the error that a connection's failure stands for."""
    start, kind = f"no reply from {source.shown}", NOT_CONNECTED
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        words = f": not connected within {min(timeout_s, CONNECT_TIMEOUT_S):g} s"
    elif isinstance(error, asyncio.TimeoutError):
        words, kind = f" within {timeout_s:g} s", "time-out"
    elif isinstance(error, aiohttp.ClientHttpProxyError):
        # Its own text holds the proxy's URL, with user and password.
        words = f": the proxy answered {error.status}"
        if error.status == 407:
            return JudgeStoppedError(f"{start}{words} ({HINTS[407]})")
    else:
        # aiohttp's text of an invalid response holds the whole URL.
        text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
        words = " ".join(scrub(text, source.api_key, source.url).split())[:MOST_WORDS]
        cause = getattr(error, "os_error", error)
        is_tls = isinstance(error, aiohttp.ClientConnectorCertificateError)
        if is_tls or isinstance(cause, ssl.SSLCertVerificationError):
            return JudgeStoppedError(f"{start}: {_CERTIFICATE} ({words})")
        if getattr(cause, "errno", None) == -2 or "Name or service not known" in text:
            return JudgeStoppedError(f"{start}: there is no such host; check {source.words.url}")
        words = f": {words or type(error).__name__}"
        kind = NOT_CONNECTED if isinstance(error, aiohttp.ClientConnectorError) else BROKEN_OFF
    return JudgeUnavailableError(
        f"{start}{words}",
        timed_out=kind == "time-out",
        may_be_billed=kind != NOT_CONNECTED,
        kind=kind,
    )


def _open_session(headers: Mapping[str, str]) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        headers={"Content-Type": "application/json", **headers},
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


@cache
def _timeout(total_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_s, sock_connect=CONNECT_TIMEOUT_S)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    is_good = response.status == 200
    most_bytes = MOST_BYTES if is_good else _MOST_ERROR_BYTES
    pieces: list[bytes] = []
    n_bytes = 0
    try:
        while n_bytes <= most_bytes and (piece := await response.content.readany()):
            pieces.append(piece)
            n_bytes += len(piece)
    except aiohttp.ClientPayloadError:
        # The status of an error counts, whatever becomes of its text.
        if is_good:
            raise
    if n_bytes > most_bytes:
        response.close()
        if is_good:
            raise aiohttp.ClientPayloadError(f"an answer of more than {MOST_BYTES >> 20} MB")
    return b"".join(pieces)
