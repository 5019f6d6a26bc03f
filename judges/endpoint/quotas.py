"""What the headers of an answer say of the provider's limits: how much is left, and until when."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final, NamedTuple

_MOST: Final = 1e12
"""Largest number of anything that is believed."""
_MOST_S: Final = 31 * 24 * 3600.0
"""Longest time until a reset that is believed."""
_MOST_RETRY_AFTER_S: Final = 24 * 3600.0
"""A server that asks to wait for longer does not mean it."""
_SKEW_S: Final = 5.0
"""A reset that is over for so long is one of now: moments are written in whole seconds."""
_NUMBER: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?", re.ASCII)
_DURATION: Final = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ms|us|µs|ns|[dhms]))+", re.ASCII)
_PART: Final = re.compile(r"([0-9.]+)(ms|us|µs|ns|[dhms])", re.ASCII)
_UNITS_S: Final[Mapping[str, float]] = {
    "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9,
}  # fmt: skip
_EPOCH_S: Final = 1e9
_EPOCH_MS: Final = 1e12
"""A bare number so large is a moment since 1970, in seconds or in milliseconds."""
_MOST_CHARACTERS: Final = 64


class Quota(NamedTuple):
    """What is left of one thing at one provider."""

    resource: str
    """What is counted: ``requests``, ``tokens``, ``input-tokens``, ``output-tokens``."""
    limit: float | None
    """As much of it as there can be, > 0; ``None`` where that is not said."""
    remaining: float
    """What is left of it, >= 0."""
    reset_s: float | None
    """Seconds until all of it is there again, >= 0; ``None`` where that is not said."""


_FAMILIES: Final = (
    *(
        (of, f"x-ratelimit-remaining-{of}", f"x-ratelimit-limit-{of}", f"x-ratelimit-reset-{of}")
        for of in ("requests", "tokens")
    ),
    *(
        (of, *(f"anthropic-ratelimit-{of}-{what}" for what in ("remaining", "limit", "reset")))
        for of in ("requests", "tokens", "input-tokens", "output-tokens")
    ),
    *(
        ("requests", f"{x}ratelimit-remaining", f"{x}ratelimit-limit", f"{x}ratelimit-reset")
        for x in ("", "x-")
    ),
)
"""What is counted, and the headers that say what remains, what there is, when it is full again."""


def quotas_in(headers: Mapping[str, str]) -> tuple[Quota, ...]:
    """What an answer says of limits, each thing once; nothing where it says nothing usable.

    Args:
        headers: Of the answer; names are looked up in lower case, as aiohttp's take any.

    >>> quotas_in({"x-ratelimit-remaining-requests": "499", "x-ratelimit-reset-requests": "120ms"})
    (Quota(resource='requests', limit=None, remaining=499.0, reset_s=0.12),)
    """
    found: list[Quota] = []
    for resource, remaining_name, limit_name, reset_name in _FAMILIES:
        value = headers.get(remaining_name)
        if value is not None and (remaining := _number(value)) is not None:
            limit = _number(headers.get(limit_name, ""))
            reset_s = _seconds(headers.get(reset_name, ""), headers)
            found.append(Quota(resource, limit or None, remaining, reset_s))
    # More left than there can be is no count of anything.
    return tuple(q for q in found if q.limit is None or q.remaining <= q.limit)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, >= 0; ``None`` where it does not, or asks wildly.

    ``retry-after-ms``, which is the finer one, is believed before ``Retry-After``, which holds
    seconds or a date.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None and milliseconds <= 1e3 * _MOST_RETRY_AFTER_S:
        return milliseconds / 1e3
    value = headers.get("Retry-After")
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
            return None
    # What is not a number is not below anything.
    return max(0.0, seconds) if seconds <= _MOST_RETRY_AFTER_S else None


def _number(text: str) -> float | None:
    text = text.strip() if len(text) <= _MOST_CHARACTERS else ""
    if _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    return number if number <= _MOST else None


def _seconds(text: str, headers: Mapping[str, str]) -> float | None:
    """Seconds until a reset that is a duration, a number of seconds, or a moment."""
    text = text.strip() if len(text) <= _MOST_CHARACTERS else ""
    if not text:
        return None
    if _NUMBER.fullmatch(text) is not None:
        seconds = float(text)
        if seconds >= _EPOCH_S:
            moment_s = seconds / 1e3 if seconds >= _EPOCH_MS else seconds
            seconds = moment_s - time.time()
    elif _DURATION.fullmatch(text) is not None:
        seconds = sum(float(n) * _UNITS_S[unit] for n, unit in _PART.findall(text))
    else:
        moment = _moment_s(text)
        if moment is None:
            return None
        # By the clock that wrote it, where that can be told: ours may be wrong.
        sent = _moment_s(headers.get("Date", "")[:_MOST_CHARACTERS])
        seconds = moment - (time.time() if sent is None else sent)
    return max(0.0, seconds) if -_SKEW_S <= seconds <= _MOST_S else None


@lru_cache(maxsize=64)
def _moment_s(text: str) -> float | None:
    """Seconds since 1970 of a date as in RFC 3339, or as in HTTP."""
    try:
        if text[:4].isdecimal():
            moment = datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00"))
        else:
            moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return moment.timestamp()
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, OSError):
        return None
