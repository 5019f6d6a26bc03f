"""Adapts requests to what a model or its server takes, learned from refusals; compares model names.

A refused request is sent again in another form: without the parameter that the error names,
without all optional ones, with the system message folded into the user's, with smaller pictures. A
form that is answered is used from then on; what was left out is in the signature. The store's key
stays that of the original request.

Some servers answer to any model's name. Names of one family differ only in organisation, version
or release tag: ``gpt-4o`` and ``gpt-4o-2024-08-06``, ``mistral-large-latest`` and
``mistral-large-2411``, ``deepseek-chat-v3-0324:free``. Replies of the family count, and the
signature has the name; replies of another family end judging.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf
from typing import Any, Final, NamedTuple

from loguru import logger

from lmms_eval_captions.judges.endpoint.failures import WORDS, Role, RoleWords
from lmms_eval_captions.judges.endpoint.request import Message, Reply, Request
from lmms_eval_captions.judges.endpoint.urls import is_self_hosted, redact_url
from lmms_eval_captions.judges.errors import (
    BROKEN_OFF,
    BlindModelError,
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
)

_PLAIN: Final = re.compile(r"[^\s|,]+")
"""Names that may stand in a signature."""
_TAG: Final = re.compile(r"(?:[:@][^/]*|[-.](?:latest|preview|exp|experimental))$")
_VERSION: Final = re.compile(
    r"[-@](?:20\d\d-?\d\d-?\d\d|20\d\d-?\d\d|\d\d-\d\d|\d\d-20\d\d|\d{4}|0\d\d)$", re.ASCII
)
_SHOWN: Final = 300


@lru_cache(maxsize=1024)
def is_same_name(first: str, second: str) -> bool:
    """Return whether two names are equal except for case and an organisation on one side."""
    first, second = first.casefold(), second.casefold()
    short, long = sorted((first, second), key=len)
    return first == second or bool(short and long.endswith(f"/{short}") and _PLAIN.fullmatch(long))


@lru_cache(maxsize=1024)
def is_same_model(first: str, second: str) -> bool:
    """Return whether two names belong to one family, in any version.

    >>> is_same_model("gpt-4o", "gpt-4o-2024-08-06"), is_same_model("gpt-4o", "gpt-4o-mini")
    (True, False)
    >>> is_same_model("mistral-large-latest", "mistral-large-2411")
    True
    >>> is_same_model("gemini-2.5-pro", "models/gemini-2.5-pro-preview-05-06")
    True
    """
    is_plain = _PLAIN.fullmatch(first) and _PLAIN.fullmatch(second)
    return bool(is_plain) and is_same_name(_family(first), _family(second))


def _family(name: str) -> str:
    """Return a name without tags and versions at its end."""
    name, before = name.casefold().strip(), ""
    while name != before:
        before = name
        name = _VERSION.sub("", _TAG.sub("", name))
    return name


@lru_cache(maxsize=1024)
def served_name(
    served: str | None, asked: str, alias: str | None, urls: tuple[str, ...], role: Role
) -> str | None:
    """Return the name under which a model answered, if it says more than the one asked for.

    A name of another version is logged once.
    """
    if served is None or is_same_name(served, alias or asked):
        return None
    if not is_own(served, asked, alias):
        raise JudgeStoppedError(_wrong_model(served, asked, alias, urls, role=role))
    versions = [_VERSION.search(name.casefold()) for name in (served, asked)]
    if all(versions):
        logger.warning(
            "{!r} was asked for and {!r} answered, another version; its name is in the signature",
            asked,
            served,
        )
    return served


def is_own(served: str | None, asked: str, alias: str | None) -> bool:
    """Return whether a reply's model is the one that was asked for."""
    names = filter(None, (asked, alias))
    return served is None or any(is_same_model(served, name) for name in names)


def _wrong_model(
    served: str, asked: str, alias: str | None, urls: Sequence[str], *, role: Role
) -> str:
    words, given = WORDS[role], repr(served[:_SHOWN])
    expected = f"{asked!r}" + (f" (or {alias!r}, its alias)" if alias else "")
    renamed = (
        ""
        if words.alias == words.model
        else f"if it is only another name of {asked!r}, set {words.alias} to it: the reply is kept "
        "and counts then; "
    )
    return (
        f"the {words.who} at {', '.join(map(redact_url, urls))} answered as {given}, but "
        f"{expected} was asked for: {words.work} stopped. If {given} is the {words.who} that you "
        f"want, set {words.model} to that name; {renamed}otherwise start {asked!r} there"
    )


Send = Callable[[Request], Awaitable[Reply]]

NEUTRAL: Final[Mapping[str, object]] = {
    "top_p": 1,
    "top_k": -1,
    "min_p": 0,
    "repetition_penalty": 1,
    "repeat_penalty": 1,
}
"""Sampling parameters that leave a model's distribution as it is. They are sent to self-hosted
servers: vLLM takes what a request leaves out from the checkpoint's ``generation_config.json``,
llama.cpp has defaults of its own (``top_k`` 40, ``repeat_penalty``)."""
SYSTEM_ROLE: Final = "system_role"
"""Stands in :attr:`.Reply.refused` for a system message that was folded into the user's."""
_ADDED: Final = "added_params"
"""Stands for the parameters that are added to every request."""
_OPTIONAL: Final = ("temperature", "top_p", "seed", "logprobs", "response_format")
_WITHOUT: Final = {
    "logprobs": "scores will be plain numbers, not expectations",
    "max_tokens": "max_completion_tokens is sent instead, which also counts reasoning",
    "temperature": "the model's own temperature is used, so {results} vary more between runs",
    "seed": "requests are sent without a seed, so {results} cannot be reproduced",
    "response_format": "replies are free text",
    SYSTEM_ROLE: "the system message is sent as part of the user's",
}
_REFUSING: Final = {400, 405, 409, 415, 422}
_TOO_LARGE: Final = re.compile(
    # Gemini: Request payload size exceeds the limit
    r"\b(?:payload|body|entity|request)(?: size)?(?: is)? (?:too large|exceeds the)"
    r"|\bexceeds (?:the )?(?:maximum |max )?(?:payload|body|request) size",
    re.IGNORECASE,
)
_MOST_CHANGES: Final = 8
_BROKEN_OFF_N: Final = 3
"""Connections that are broken off with added parameters, and answered without, before these are
left out: mlx_lm.server ends a connection if ``top_k`` is negative."""
_GUESSES_N: Final = 2
"""Requests that are answered without optional parameters, and were refused with them for a reason
that names none, before these are left out."""
_ABOUT_SYSTEM: Final = re.compile(r"\bsystem\b|\broles?\b", re.IGNORECASE)
_MEDIUM: Final = r"(?:image|picture|vision|visual|video|multi-?modal)"
_INPUT: Final = r"(?:s|_urls?)?(?: (?:input|content|block|part|modalit|capabilit)\w*)*"
_END: Final = r" *(?:$|[.,;:(\[]|-|(?:by|for|and|but|please)\b)"
_BLIND: Final = re.compile(
    "|".join(
        (
            # llama.cpp: image input is not supported - hint: you may need to provide the mmproj
            rf"\b{_MEDIUM} inputs?(?: modality)? (?:is|are) not (?:supported|enabled){_END}",
            # Images are not supported by this model
            rf"\b{_MEDIUM}{_INPUT} (?:is|are) not (?:supported|available) (?:by|for) this model",
            # Model does not support images; No endpoints found that support image input
            rf"(?:not|cannot|nt|that|of) (?:support|accept|take) (?:any )?{_MEDIUM}{_INPUT}{_END}",
            rf"(?:not|of) (?:have|process(?:ing)?) {_MEDIUM}(?:s\b| capabilit)(?<!have images)",
            # vLLM: is not a multimodal model; at most 0 image(s) may be provided
            rf"\bnot a multi-?modal\b|\bis a text-only model|\bat most 0 {_MEDIUM}",
            r"\bonly text\b(?: content)?(?: type)? is\b|\bsupports only text\b",
            # unknown variant image_url; Unsupported content part type
            rf"\b(?:variant|part type|invalid value):? {_MEDIUM}_url\b(?!\.\w)",
            r"\bcontent must be a string\b(?! or)|unsupported content\[\]|process_mm_data",
            r"\brequired for image input|_url is only supported by|type image_url is not supported",
        )
    ),
    re.IGNORECASE,
)


def added_params(urls: Sequence[str], api: str = "openai") -> Mapping[str, object]:
    """Return the parameters to add for an endpoint; none unless it is self-hosted."""
    return NEUTRAL if api == "openai" and all(map(is_self_hosted, urls)) else {}


def cannot_see(said: str) -> bool:
    """Return whether an error says that the model takes no pictures or videos at all."""
    return _BLIND.search(re.sub(r"[\\'\"`]+", "", said)) is not None


class _Form(NamedTuple):
    """The form in which a model's requests are sent."""

    left_out: tuple[str, ...] = ()
    """Parameters, ``SYSTEM_ROLE``, and ``_ADDED``."""
    shrinks: int = 0

    def without(self, *names: str) -> _Form:
        return self._replace(left_out=tuple(dict.fromkeys((*self.left_out, *names))))


_USUAL: Final = _Form()


@dataclass(slots=True)
class _Model:
    """Knowledge of one model."""

    form: _Form
    has_answered: bool = False
    n_helped: Counter[_Form] = field(default_factory=Counter)
    """Forms to how often they were answered after another one was refused."""
    refused_bytes: float = inf


class Adaptations:
    """Sends requests in the form that their model takes."""

    def __init__(
        self,
        words: RoleWords,
        added: Mapping[str, object] | None = None,
        *,
        not_taken: Sequence[str] = (),
        n_replicas: int = 1,
        is_batch: bool = False,
    ) -> None:
        self._words = words
        self._added = added or {}
        self._not_taken = tuple(not_taken)
        self._n_replicas = n_replicas
        self._is_batch = is_batch
        self._models: dict[str, _Model] = {}

    async def send(self, request: Request, attempt: int, send: Send) -> Reply:
        """Return the reply to a request, with the parameters that were left out."""
        known = self._models.get(request.model)
        if known is None:
            known = self._models[request.model] = _Model(_Form(left_out=self._not_taken))
        usual = form = known.form
        if form.shrinks and len(request.body(attempt)) < known.refused_bytes:
            form = form._replace(shrinks=0)
        first: JudgeError | None = None
        n_least = 1
        for _ in range(_MOST_CHANGES):
            sent = await self._formed(request, attempt, form)
            if sent is None:
                break
            try:
                reply = await send(sent)
            except JudgeError as error:
                self._check_sight(request, error)
                first = first or error
                changed = self._changed(form, usual, error, request, known)
                if changed is None:
                    break
                usual, form, n_least = known.form, changed[0], max(n_least, changed[1])
            else:
                if first is None or form == usual:
                    known.has_answered = True
                else:
                    self._learn(known, form, len(request.body(attempt)), first, n_least)
                if not form.left_out:
                    return reply
                return replace(reply, refused=_refused(form, request, attempt))
        raise first or JudgeRequestError("no form of the request can be sent")

    def _check_sight(self, request: Request, error: JudgeError) -> None:
        """Raise if an error says that the model cannot be shown what a request shows."""
        shown = request.shown
        if shown and error.status != 429 and cannot_see(error.said or str(error)):
            words = self._words
            advice = words.video if shown == "a video" else words.sight
            raise BlindModelError(
                f"the {words.who} {request.model!r} cannot be shown {shown}: {error}; {advice}"
            ) from error

    async def _formed(self, request: Request, attempt: int, form: _Form) -> Request | None:
        """Return a request in a form; ``None`` if pictures cannot be that small."""
        if form == _USUAL and not self._added:
            return request
        instead: Sequence[Message] | None = None
        if form.shrinks:
            if request.shrink is None:
                return None
            instead = await asyncio.to_thread(request.shrink, form.shrinks)
            if instead is None:
                return None
        if SYSTEM_ROLE in form.left_out:
            instead = _folded(request.messages if instead is None else instead)
        asked = request.parameters(attempt)
        left_out = tuple(name for name in form.left_out if name in asked)
        added = {name: v for name, v in self._added.items() if name not in request.params}
        if _ADDED in form.left_out:
            added = {}
        if not (left_out or added or instead is not None):
            return request
        return request.sent_as(left_out=left_out, added_params=added, instead=instead)

    def _changed(  # noqa: PLR0911 - one return for each form
        self, form: _Form, usual: _Form, error: JudgeError, request: Request, known: _Model
    ) -> tuple[_Form, int] | None:
        """Return the next form to try after an error, and how often it must help to be learned."""
        if usual != known.form and (_is_refusal(error) or _is_broken_off(error)):
            return known.form, 0  # learned meanwhile, from another request
        if error.status == 413 or (error.status in _REFUSING and _TOO_LARGE.search(str(error))):
            smaller = form._replace(shrinks=form.shrinks + 1)
            return None if request.shrink is None else (smaller, 1)
        is_new = not known.has_answered or self._n_replicas > 1
        is_refusal = _is_refusal(error)
        is_extended = bool(self._added) and _ADDED not in form.left_out
        # A server of a few lines of Python fails (500) at what it does not expect.
        is_named = any(name in error.said for name in self._added)
        if is_extended and is_named and (is_refusal or error.status == 500):
            return form.without(_ADDED), 1
        if is_refusal and (named := self._named(form, error, request, is_new=is_new)):
            return form.without(named), 1
        if is_extended and is_new and (is_refusal or error.status == 404 or _is_broken_off(error)):
            return form.without(_ADDED), _BROKEN_OFF_N if _is_broken_off(error) else 1
        if not is_refusal or not is_new or self._is_batch:
            return None
        folded = form.without(SYSTEM_ROLE)
        if folded != form and _has_system(request) and _ABOUT_SYSTEM.search(error.said):
            return folded, 1
        bare = form.without(*(name for name in _OPTIONAL if name in request.parameters(0)))
        return None if bare == form else (bare, _GUESSES_N)

    def _named(self, form: _Form, error: JudgeError, request: Request, *, is_new: bool) -> str:
        """Return the parameter that an error is about; empty if none of those that were sent."""
        asked = [*request.parameters(0), SYSTEM_ROLE]
        sendable = [name for name in asked if name in _WITHOUT or name in _OPTIONAL]
        for name in (name for name in sendable if name not in form.left_out):
            if name == error.parameter or (name == "logprobs" and "logprobs" in error.parameter):
                return name
            if is_new and re.search(rf"(?<![A-Za-z]){name.removesuffix('s')}", error.said):
                return name
        return ""

    def _learn(
        self, known: _Model, form: _Form, n_bytes: int, refusal: JudgeError, n_least: int
    ) -> None:
        """Use a form that was answered from now on, once it has helped ``n_least`` times."""
        known.n_helped[form] += 1
        if known.n_helped[form] < n_least:
            return
        if form.shrinks:
            known.refused_bytes = min(known.refused_bytes, n_bytes)
        before = known.form
        known.form = before.without(*form.left_out)
        known.form = known.form._replace(shrinks=max(before.shrinks, form.shrinks))
        known.has_answered = True
        for name in known.form.left_out[len(before.left_out) :]:
            if name == _ADDED:
                logger.info(
                    "requests are sent without {}: the server's own sampling settings are used "
                    "({})",
                    ", ".join(self._added),
                    refusal,
                )
                continue
            words = _WITHOUT.get(name, f"requests are sent without {name}")
            logger.warning("{}: {}", words.format(results=self._words.results), refusal)
        if form.shrinks > before.shrinks:
            logger.warning(
                "the {} refuses requests this large: pictures are sent with 1/{} of their "
                "pixels ({})",
                self._words.who,
                2**form.shrinks,
                refusal,
            )


def _refused(form: _Form, request: Request, attempt: int) -> tuple[str, ...]:
    asked = request.parameters(attempt)
    is_folded = SYSTEM_ROLE in form.left_out and _has_system(request)
    return (*(name for name in form.left_out if name in asked), *[SYSTEM_ROLE] * is_folded)


def _has_system(request: Request) -> bool:
    return any(message["role"] == "system" for message in request.messages)


def _is_refusal(error: JudgeError) -> bool:
    return isinstance(error, JudgeRequestError) and error.status in _REFUSING


def _is_broken_off(error: JudgeError) -> bool:
    return isinstance(error, JudgeUnavailableError) and error.kind == BROKEN_OFF


def _folded(messages: Sequence[Message]) -> list[Message]:
    """Return messages with the system's text at the start of the first user message."""
    system = [str(m["content"]) for m in messages if m["role"] == "system"]
    others: list[dict[str, Any]] = [dict(m) for m in messages if m["role"] != "system"]
    if system and others:
        content, text = others[0]["content"], "\n\n".join(system)
        if isinstance(content, list):
            others[0]["content"] = [{"type": "text", "text": text}, *content]
        else:
            others[0]["content"] = f"{text}\n\n{content}"
    return list(others)
