"""Errors, and what is left of limits, in answers over HTTP."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urljoin

from lmms_eval_captions.judges.endpoint.replies import status_of
from lmms_eval_captions.judges.endpoint.urls import answer_text, redact_url, scrub
from lmms_eval_captions.judges.errors import (
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
)

Role = Literal["judge", "cheap_judge", "captioner", "builder"]
"""Role of a model: gives verdicts, gives verdicts that shrink a sample, captions, or builds
benchmarks."""


@dataclass(frozen=True, slots=True)
class RoleWords:
    """Words of one role: names of it and its work, settings of its properties, and advice."""

    who: str
    work: str
    results: str
    key: str
    model: str
    alias: str
    url: str
    timeout: str
    max_tokens: str
    limit: str
    sight: str
    video: str


_VISION: Final = "(on llama.cpp: with the model's --mmproj)"
_CHEAP: Final = "LMMS_CAPTIONS_CHEAP_JUDGE"
_JUDGE: Final = RoleWords(
    who="judge",
    work="judging",
    results="verdicts",
    key="OPENAI_API_KEY",
    model="LMMS_CAPTIONS_JUDGE",
    alias="LMMS_CAPTIONS_JUDGE_ALIAS",
    url="LMMS_CAPTIONS_JUDGE_URL",
    timeout="LMMS_CAPTIONS_JUDGE_TIMEOUT",
    max_tokens="LMMS_CAPTIONS_JUDGE_MAX_TOKENS",
    limit="LMMS_CAPTIONS_MAX_COST",
    sight=(
        "msvd_eval_ref_free, msvd_eval_combined and the tasks of own clips show the judge "
        "frames of the clip and need one that sees: set LMMS_CAPTIONS_JUDGE to a "
        f"vision-language model {_VISION}. Text-only questions continue"
    ),
    video="set LMMS_CAPTIONS_JUDGE to a model that takes videos",
)
_NAMED: Final = "(NAME@URL#VARIABLE)"
WORDS: Final[Mapping[Role, RoleWords]] = {
    "judge": _JUDGE,
    "cheap_judge": replace(
        _JUDGE,
        who="cheap judge",
        key=f"the key in the variable that {_CHEAP} names {_NAMED}, or the judge's key",
        model=f"the name in {_CHEAP}",
        alias=f"the name in {_CHEAP}",
        url=f"the address in {_CHEAP}",
        sight=f"name a vision-language model in {_CHEAP} {_VISION}",
        video=f"name a model that takes videos in {_CHEAP}",
    ),
    "captioner": RoleWords(
        who="captioner",
        work="captioning",
        results="captions",
        key="caption_openai's key, in the variable that api_key_env names",
        model="caption_openai's model=",
        alias="caption_openai's alias=",
        url="caption_openai's base_url=",
        timeout="caption_openai's timeout_s=",
        max_tokens="the task's max_new_tokens",
        limit="caption_openai's max_cost=",
        sight=f"name a vision-language model with caption_openai's model= {_VISION}",
        video="use caption_openai's send=frames, or name a model= that takes videos",
    ),
    "builder": RoleWords(
        who="model",
        work="building",
        results="replies",
        key=f"the key in the variable behind its address {_NAMED}, or OPENAI_API_KEY without one",
        model="the name given with --writer, --solver or --viewer",
        alias="the name given with --writer, --solver or --viewer",
        url="the address given with it (NAME@URL)",
        timeout="--timeout-s",
        max_tokens="a model that reasons less",
        limit="--max-cost",
        sight=f"name a vision-language model with --writer and --viewer {_VISION}",
        video="name a model that is shown frames",
    ),
}


FORBIDDEN: Final = "the key may not use this model or endpoint"
HINTS: Final[Mapping[int, str]] = {
    401: "check {words.key}",
    402: "the account has nothing left to pay with",
    403: FORBIDDEN,
    404: "check the model's name ({words.model}) and {words.url}",
    407: "check the user and password in the environment's proxy",
}
_PASSING: Final = {408, 425, 429}
_TIMED_OUT: Final = {408, 504, 524}
MOST_WORDS: Final = 300
_OUT_OF_MONEY: Final = (
    "insufficient_quota", "credit balance is too low", "enforced_spend_limit_reached",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """The address that answers come from, for messages."""

    url: str
    api_key: str | None = field(default=None, repr=False)
    words: RoleWords = WORDS["judge"]
    endpoint: str | None = None

    @property
    def shown(self) -> str:
        """The address without secrets."""
        return redact_url(self.url)

    def text(self, raw: bytes, *, strictly: bool = False) -> str:
        """Decode an answer, without secrets."""
        return answer_text(raw, self.api_key, self.url, strictly=strictly)


def failure(
    status: int,
    raw: bytes,
    source: Source,
    *,
    headers: Mapping[str, str],
    answered: str | None = None,
) -> JudgeError:
    """Return the error that an answer stands for."""
    said, parameter = _server_words(raw, source)
    message = f"{source.shown} answered {answered or status}: {said}"
    error: JudgeError
    if status in {301, 302, 303, 307, 308}:
        goal, who = "", source.words.who
        with suppress(ValueError):
            goal = redact_url(urljoin(source.url, headers.get("Location", "")))
        goal = scrub(goal, source.api_key, source.url)
        goal = goal.removesuffix("/chat/completions").removesuffix("/v1/messages")[:MOST_WORDS]
        error = JudgeStoppedError(
            f"{source.shown} answered {status}, a redirect to {goal!r}, which is not followed: the "
            f"key goes to the {who}'s own address alone. If that is the {who}, set "
            f"{source.words.url} to it"
        )
    elif status in (400, 402, 429) and any(text in said for text in _OUT_OF_MONEY):
        error = JudgeStoppedError(f"{message} ({HINTS[402]})")
    elif status in HINTS:
        error = JudgeStoppedError(f"{message} ({HINTS[status].format(words=source.words)})")
    elif status in _PASSING or status >= 500:
        error = JudgeUnavailableError(
            message,
            retry_after_s=retry_after_s(headers),
            rate_limited=status == 429,
            timed_out=status in _TIMED_OUT,
            # A gateway may hide an answer, and its bill.
            may_be_billed=status in {*_TIMED_OUT, 502},
            kind=f"HTTP {status}",
        )
    else:
        error = JudgeRequestError(message)
    error.status, error.said, error.parameter = status, said, parameter
    return error


def error_within(error: object, source: Source) -> JudgeError:
    """Return the error that stands in an answer of 200, by its code or type."""
    raw = json.dumps({"error": error}).encode("ascii")
    status = status_of(error)
    if status is None:
        return JudgeUnavailableError(
            f"{source.shown} answered 200 with an error: {_server_words(raw, source)[0]}",
            kind="an error in place of a reply",
            is_own=True,
        )
    return failure(status, raw, source, headers={}, answered=f"200 with an error {status}")


def no_reply_in(raw: bytes, source: Source, expected: str) -> JudgeUnavailableError:
    """Return the error of an answer of 200 that cannot be read."""
    said = scrub(source.text(raw), source.api_key)[:MOST_WORDS]
    return JudgeUnavailableError(
        f"expected {expected} from {source.shown}, got {said!r}",
        kind=f"no {expected.removeprefix('a ')}",
        is_own=True,
    )


def _server_words(raw: bytes, source: Source) -> tuple[str, str]:
    """Return the human part of an error body, shortened, and the parameter that it names."""
    text, parameter = source.text(raw).strip(), ""
    with suppress(ValueError, RecursionError):
        payload: Any = json.loads(text)
        error = payload.get("error", payload) if isinstance(payload, dict) else payload
        if isinstance(error, dict):
            details = [str(error[name]) for name in ("code", "message") if error.get(name)]
            text = str(error.get("message") or ": ".join(details) or text)
            if any(word in str(error.get("code")) for word in _OUT_OF_MONEY):
                text = f"{error['code']}: {text}"
            parameter = error["param"] if isinstance(error.get("param"), str) else ""
        else:
            text = str(error)
    # Shortened last: half a key must not stay.
    text = " ".join(scrub(text, source.api_key).split())[:MOST_WORDS]
    return text or "(empty response)", parameter


_MOST_S: Final = 31 * 24 * 3600.0
_MOST_RETRY_AFTER_S: Final = 24 * 3600.0
"""Longest waits that are believed."""
_SKEW_S: Final = 5.0
"""Age of a reset that counts as now: moments are written in whole seconds."""
_NUMBER: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?", re.ASCII)
_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|us|µs|ns|[dhms])", re.ASCII)
_UNITS_S: Final[Mapping[str, float]] = {
    "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9,
}  # fmt: skip


class Quota(NamedTuple):
    """Remaining quota of one resource at one provider."""

    resource: str
    """``requests``, ``tokens``, ``input-tokens`` or ``output-tokens``."""
    limit: float | None
    """Size of the full quota, > 0; ``None`` if it is not told."""
    remaining: float
    reset_s: float | None
    """Seconds until it is full again, >= 0; ``None`` if that is not told."""


_FAMILIES: Final = tuple(
    (resource, *(name.format(part) for part in ("remaining", "limit", "reset")))
    for resource, name in (
        ("requests", "x-ratelimit-{}-requests"),
        ("tokens", "x-ratelimit-{}-tokens"),
        ("requests", "anthropic-ratelimit-requests-{}"),
        ("tokens", "anthropic-ratelimit-tokens-{}"),
        ("input-tokens", "anthropic-ratelimit-input-tokens-{}"),
        ("output-tokens", "anthropic-ratelimit-output-tokens-{}"),
        ("requests", "ratelimit-{}"),
        ("requests", "x-ratelimit-{}"),
    )
)
"""Resource, and the headers of what remains, of the full quota and of the reset."""


def quotas_in(headers: Mapping[str, str]) -> tuple[Quota, ...]:
    """Read the quotas in the headers of an answer; those that are unusable are left out."""
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
    """Return the seconds that a server asks to wait, >= 0; ``None`` if it does not."""
    for name, unit_s in (("retry-after-ms", 1e-3), ("Retry-After", 1.0)):
        seconds = _seconds(headers.get(name, ""), headers)
        if seconds is not None and seconds * unit_s <= _MOST_RETRY_AFTER_S:
            return seconds * unit_s
    return None


def _number(text: str) -> float | None:
    text = text.strip() if len(text) <= 64 else ""
    return None if _NUMBER.fullmatch(text) is None else float(text)


def _seconds(text: str, headers: Mapping[str, str]) -> float | None:
    """Seconds until a reset that is a duration, a number of seconds, or a moment."""
    text = text.strip() if len(text) <= 64 else ""
    if not text:
        return None
    seconds = _number(text)
    if seconds is not None and seconds >= 1e9:  # since 1970, in seconds or in milliseconds
        seconds = (seconds / 1e3 if seconds >= 1e12 else seconds) - time.time()
    elif seconds is None and not _PART.sub("", text):
        seconds = sum(float(n) * _UNITS_S[unit] for n, unit in _PART.findall(text))
    elif seconds is None and (moment_s := _moment_s(text)) is not None:
        # By the clock that wrote it, if that is known: ours may be wrong.
        sent_s = _moment_s(headers.get("Date", "")[:64])
        seconds = moment_s - (time.time() if sent_s is None else sent_s)
    return max(0.0, seconds) if seconds is not None and -_SKEW_S <= seconds <= _MOST_S else None


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
