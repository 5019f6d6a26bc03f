"""Comparison of the model that answered with the model that was asked for.

Some servers answer to any name. Names of one family differ only in organisation, version or
release tag: ``gpt-4o`` and ``gpt-4o-2024-08-06``, ``mistral-large-latest`` and
``mistral-large-2411``, ``deepseek-chat-v3-0324:free``. Replies of the family count, and the
signature has the name; replies of another family end judging.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.failures import WORDS, Role
from lmms_eval_captions.judges.endpoint.urls import redact_url
from lmms_eval_captions.judges.errors import JudgeStoppedError

_PLAIN: Final = re.compile(r"[^\s|,]+")
"""Names that may stand in a signature."""
_TAG: Final = re.compile(r"(?:[:@][^/]*|[-.](?:latest|preview|exp|experimental))$")
_VERSION: Final = re.compile(
    r"[-@](?:20\d\d-?\d\d-?\d\d|20\d\d-?\d\d|\d\d-\d\d|\d\d-20\d\d|\d{4}|0\d\d)$", re.ASCII
)
_SHOWN: Final = 300


@lru_cache(maxsize=1024)
def is_same_name(first: str, second: str) -> bool:
    """Return whether two names are equal except for case and an organisation on one side.

    >>> is_same_name("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b-instruct")
    True
    >>> is_same_name("meta-llama/Llama-3.1-8B-Instruct", "other/Llama-3.1-8B-Instruct")
    False
    """
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

    Args:
        served: Name in the reply, ``None`` if it has none.
        asked: Name that was asked for.
        alias: Name under which the endpoint answers as that model.
        urls: Base URLs of the endpoint, for messages.
        role: Role of the model, for messages.

    Raises:
        JudgeStoppedError: If it is another model.
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
