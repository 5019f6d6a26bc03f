"""Adapts requests to what a model or its server takes, learned from refusals; compares model names.

A refused request is sent again in another form: without the parameter that the error names,
without all optional ones, with the system message folded into the user's, with smaller pictures. A
form that is answered is used from then on; what was left out is in the signature. The store's key
stays that of the original request.

Some servers answer to any model's name. Names of one family differ only in organisation, version
or release tag. Replies of the family count, and the signature has the name; replies of another
family end judging.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
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
    """Return the name under which a model answered, if it says more than the one asked for."""
    if served is None or is_same_name(served, alias or asked):
        return None
    if not is_own(served, asked, alias):
        words, given = WORDS[role], repr(served[:300])
        expected = f"{asked!r}" + (f" (or {alias!r}, its alias)" if alias else "")
        renamed = f"if it is only another name of {asked!r}, set {words.alias} to it: the reply is "
        renamed = "" if words.alias == words.model else f"{renamed}kept and counts then; "
        raise JudgeStoppedError(
            f"the {words.who} at {', '.join(map(redact_url, urls))} answered as {given}, but "
            f"{expected} was asked for: {words.work} stopped. If {given} is the {words.who} that "
            f"you want, set {words.model} to that name; {renamed}otherwise start {asked!r} there"
        )
    versions = [_VERSION.search(name.casefold()) for name in (served, asked)]
    if all(versions):
        said = "another version; its name is in the signature"
        logger.warning("{!r} was asked for and {!r} answered, {}", asked, served, said)
    return served


def is_own(served: str | None, asked: str, alias: str | None) -> bool:
    """Return whether a reply's model is the one that was asked for."""
    names = filter(None, (asked, alias))
    return served is None or any(is_same_model(served, name) for name in names)


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
        self._words, self._added = words, added or {}
        self._first_form = _Form(tuple(not_taken))
        self._n_replicas, self._is_batch = n_replicas, is_batch
        self._forms: dict[str, _Form] = {}
        """Model to the form that it takes, as far as is known."""
        self._answered: set[str] = set()
        self._n_helped: Counter[tuple[str, _Form]] = Counter()
        """How often a model answered a form after another one was refused."""
        self._refused_bytes: dict[str, float] = {}

    async def send(self, request: Request, attempt: int, send: Send) -> Reply:
        """Return the reply to a request, with the parameters that were left out."""
        model = request.model
        usual = form = self._forms.setdefault(model, self._first_form)
        n_bytes = len(request.body(attempt)) if form.shrinks else inf
        if n_bytes < self._refused_bytes.get(model, inf):
            form = form._replace(shrinks=0)
        first: JudgeError | None = None
        n_least = 1
        for _ in range(8):
            sent = await self._formed(request, attempt, form)
            if sent is None:
                break
            try:
                reply = await send(sent)
            except JudgeError as error:
                self._check_sight(request, error)
                first = first or error
                changed = self._changed(form, usual, error, request)
                if changed is None:
                    break
                usual, form, n_least = self._forms[model], changed[0], max(n_least, changed[1])
            else:
                if first is None or form == usual:
                    self._answered.add(model)
                else:
                    self._learn(request, attempt, form, first, n_least)
                if not form.left_out:
                    return reply
                asked = request.parameters(attempt)
                refused = [name for name in form.left_out if name in asked]
                if SYSTEM_ROLE in form.left_out and _has_system(request):
                    refused.append(SYSTEM_ROLE)
                return replace(reply, refused=tuple(refused))
        raise first or JudgeRequestError("no form of the request can be sent")

    def _check_sight(self, request: Request, error: JudgeError) -> None:
        """Raise if an error says that the model cannot be shown what a request shows."""
        shown, words = request.shown, self._words
        if shown and error.status != 429 and cannot_see(error.said or str(error)):
            advice = words.video if shown == "a video" else words.sight
            raise BlindModelError(
                f"the {words.who} {request.model!r} cannot be shown {shown}: {error}; {advice}"
            ) from error

    async def _formed(self, request: Request, attempt: int, form: _Form) -> Request | None:
        """Return a request in a form; ``None`` if pictures cannot be that small."""
        if not (form.left_out or form.shrinks or self._added):
            return request
        instead: Sequence[Message] | None = None
        if form.shrinks:
            if request.shrink is not None:
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
        self, form: _Form, usual: _Form, error: JudgeError, request: Request
    ) -> tuple[_Form, int] | None:
        """Return the next form to try after an error, and how often it must help to be learned."""
        known = self._forms[request.model]
        is_refusal = isinstance(error, JudgeRequestError) and error.status in _REFUSING
        is_broken_off = isinstance(error, JudgeUnavailableError) and error.kind == BROKEN_OFF
        if usual != known and (is_refusal or is_broken_off):
            return known, 0  # learned meanwhile, from another request
        if error.status == 413 or (error.status in _REFUSING and _TOO_LARGE.search(str(error))):
            return (form._replace(shrinks=form.shrinks + 1), 1) if request.shrink else None
        is_new = request.model not in self._answered or self._n_replicas > 1
        is_extended = bool(self._added) and _ADDED not in form.left_out
        # A server of a few lines of Python fails (500) at what it does not expect.
        is_named = any(name in error.said for name in self._added)
        if is_extended and is_named and (is_refusal or error.status == 500):
            return form.without(_ADDED), 1
        if is_refusal and (named := _named(form, error, request, is_new=is_new)):
            return form.without(named), 1
        if is_extended and is_new and (is_refusal or error.status == 404 or is_broken_off):
            return form.without(_ADDED), _BROKEN_OFF_N if is_broken_off else 1
        if not is_refusal or not is_new or self._is_batch:
            return None
        folded = form.without(SYSTEM_ROLE)
        if folded != form and _has_system(request) and _ABOUT_SYSTEM.search(error.said):
            return folded, 1
        bare = form.without(*(name for name in _OPTIONAL if name in request.parameters(0)))
        return None if bare == form else (bare, _GUESSES_N)

    def _learn(
        self, request: Request, attempt: int, form: _Form, refusal: JudgeError, n_least: int
    ) -> None:
        """Use a form that was answered from now on, once it has helped ``n_least`` times."""
        model, before = request.model, self._forms[request.model]
        self._n_helped[model, form] += 1
        if self._n_helped[model, form] < n_least:
            return
        if form.shrinks:
            most = self._refused_bytes.get(model, inf)
            self._refused_bytes[model] = min(most, len(request.body(attempt)))
        known = before.without(*form.left_out)
        self._forms[model] = known._replace(shrinks=max(before.shrinks, form.shrinks))
        self._answered.add(model)
        for name in known.left_out[len(before.left_out) :]:
            if name == _ADDED:
                names = ", ".join(self._added)
                words = f"requests are sent without {names}: the server's own sampling settings are"
                logger.info("{} used ({})", words, refusal)
            else:
                words = _WITHOUT.get(name, f"requests are sent without {name}")
                logger.warning("{}: {}", words.format(results=self._words.results), refusal)
        if form.shrinks > before.shrinks:
            logger.warning(
                f"the {self._words.who} refuses requests this large: pictures are sent with "
                f"1/{2**form.shrinks} of their pixels ({refusal})"
            )


def _named(form: _Form, error: JudgeError, request: Request, *, is_new: bool) -> str:
    """Return the parameter that an error is about; empty if none of those that were sent."""
    for name in (*request.parameters(0), SYSTEM_ROLE):
        if name in form.left_out or not (name in _WITHOUT or name in _OPTIONAL):
            continue
        if name == error.parameter or (name == "logprobs" and "logprobs" in error.parameter):
            return name
        if is_new and re.search(rf"(?<![A-Za-z]){name.removesuffix('s')}", error.said):
            return name
    return ""


def _has_system(request: Request) -> bool:
    return any(message["role"] == "system" for message in request.messages)


def _folded(messages: Sequence[Message]) -> list[Message]:
    """Return messages with the system's text at the start of the first user message."""
    system = [str(m["content"]) for m in messages if m["role"] == "system"]
    others: list[dict[str, Any]] = [dict(m) for m in messages if m["role"] != "system"]
    if system and others:
        content, text = others[0]["content"], "\n\n".join(system)
        is_list = isinstance(content, list)
        part = [{"type": "text", "text": text}]
        others[0]["content"] = [*part, *content] if is_list else f"{text}\n\n{content}"
    return list(others)
