"""The error that a connection's failure is."""

from __future__ import annotations

import asyncio

import aiohttp

from lmms_eval_captions.judges.endpoint.answers.failures import HINTS, MOST_WORDS
from lmms_eval_captions.judges.endpoint.http.wire import CONNECT_TIMEOUT_S
from lmms_eval_captions.judges.endpoint.redaction import scrub
from lmms_eval_captions.judges.endpoint.urls import redact_url
from lmms_eval_captions.judges.errors import (
    BROKEN_OFF,
    JudgeStoppedError,
    JudgeUnavailableError,
)


def no_reply(
    error: Exception, url: str, *, timeout_s: float, api_key: str | None
) -> JudgeUnavailableError | JudgeStoppedError:
    """The error that a connection's failure is.

    Args:
        error: What aiohttp raised.
        url: Where to.
        timeout_s: Seconds until the reply had to be complete.
        api_key: What must not be in the message.
    """
    start = f"no reply from {redact_url(url)}"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return JudgeUnavailableError(
            f"{start}: not connected within {min(timeout_s, CONNECT_TIMEOUT_S):g} s",
            may_be_billed=False,
            kind="not connected",
        )
    if isinstance(error, asyncio.TimeoutError):
        return JudgeUnavailableError(
            f"{start} within {timeout_s:g} s", timed_out=True, kind="time-out"
        )
    if isinstance(error, aiohttp.ClientHttpProxyError):
        # Its own text holds the proxy's URL, with user and password.
        words = f"the proxy answered {error.status}"
        if error.status == 407:
            return JudgeStoppedError(f"{start}: {words} ({HINTS[407]})")
        return JudgeUnavailableError(f"{start}: {words}", may_be_billed=False, kind="not connected")
    # aiohttp's text of a response that is none holds the whole URL, with what it asks for.
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    words = " ".join(scrub(text, api_key, url).split())[:MOST_WORDS]
    is_connected = not isinstance(error, aiohttp.ClientConnectorError)
    return JudgeUnavailableError(
        f"{start}: {words or type(error).__name__}",
        may_be_billed=is_connected,
        kind=BROKEN_OFF if is_connected else "not connected",
    )
