"""Whether a reply is of the model that was asked for: some servers answer to any name.

A completion carries the name of its ``model``. Two names are the same model where they are

- equal but for case;
- equal but for an organisation or a folder before it, on one side only: ``meta-llama/X`` and ``X``;
- equal but for a version on one side only: ``gpt-4o`` and ``gpt-4o-2024-08-06``, ``-20240806``,
  ``@20240806``, ``-0806``, ``-08-06``, ``-001``. ``-latest`` is any version, and so is ``@main``,
  which ``transformers serve`` puts behind every name: the newest revision of a repository.

Two different versions are two models. A reply without a name is no evidence, and counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.endpoint.roles import WORDS, Role
from lmms_eval_captions.judges.endpoint.urls import redact_url
from lmms_eval_captions.judges.errors import JudgeStoppedError

_PLAIN: Final = re.compile(r"[^\s|,]+")
"""A name that may stand in a signature."""
_MONTH_AND_DAY: Final = r"(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])"
_VERSION: Final = re.compile(rf"[-@](?:(?:20\d\d-?)?{_MONTH_AND_DAY}|0\d\d)$", re.ASCII)
_LATEST: Final = re.compile(r"(?:[-@:]latest|@main)$")
_SHOWN: Final = 300
"""Characters of a name in a message."""


def check_name(
    reply: Reply,
    asked: str,
    *,
    alias: str | None,
    urls: Sequence[str],
    role: Role = "judge",
    batches: Path | None = None,
) -> Reply:
    """A reply of the model that was asked for; its name is kept where it says more than was asked.

    Args:
        reply: As it was read.
        asked: Name of the model that was asked for.
        alias: Name under which the endpoint answers as that model, ``None`` for its own.
        urls: Base URLs of the endpoint, for the message.
        role: What the model is asked to be, for the message.
        batches: Where batches are written down that were submitted, ``None`` without.

    Raises:
        JudgeStoppedError: If it is another model's.
    """
    served = reply.model
    if served is None:
        return reply
    if is_same_name(served, alias or asked):
        return replace(reply, model=None)
    if is_same_model(served, alias or asked) or (alias and is_same_model(served, asked)):
        return reply
    words = _wrong_model(served, asked, alias, urls, role=role)
    raise JudgeStoppedError(words + (_collected(batches) if batches else ""))


@lru_cache(maxsize=1024)
def is_same_name(first: str, second: str) -> bool:
    """Whether two names are equal but for case, and for what stands before it on one side.

    >>> is_same_name("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b-instruct")
    True
    >>> is_same_name("meta-llama/Llama-3.1-8B-Instruct", "other/Llama-3.1-8B-Instruct")
    False
    """
    first, second = first.casefold(), second.casefold()
    if first == second:
        return True
    short, long = sorted((first, second), key=len)
    return bool(_PLAIN.fullmatch(long)) and bool(short) and long.endswith(f"/{short}")


@lru_cache(maxsize=1024)
def is_same_model(first: str, second: str) -> bool:
    """Whether two names are the same model, as this module has it.

    >>> is_same_model("gpt-4o", "gpt-4o-2024-08-06"), is_same_model("gpt-4o", "gpt-4o-mini")
    (True, False)
    >>> is_same_model("gpt-4o-2024-05-13", "gpt-4o-2024-08-06")
    False
    """
    if is_same_name(first, second):
        return True
    if not (_PLAIN.fullmatch(first) and _PLAIN.fullmatch(second)):
        return False
    (name, version), (other_name, other_version) = _split(first), _split(second)
    versions = {version, other_version} - {""}
    return len(versions) < 2 and is_same_name(name, other_name)


def _split(name: str) -> tuple[str, str]:
    """A name without its version, and the version's digits, of which there may be none."""
    name = _LATEST.sub("", name.casefold())
    version = _VERSION.search(name)
    if version is None:
        return name, ""
    return name[: version.start()], "".join(filter(str.isdecimal, version[0]))


def _wrong_model(
    served: str, asked: str, alias: str | None, urls: Sequence[str], *, role: Role
) -> str:
    """Both names, and what to do."""
    words, given = WORDS[role], repr(served[:_SHOWN])
    expected = f"{asked!r}" + (f" (or {alias!r}, its alias)" if alias else "")
    renamed = (
        ""
        if words.alias == words.model
        else f"if it is only another name of {asked!r}, set {words.alias} to it; "
    )
    return (
        f"the {words.who} at {', '.join(map(redact_url, urls))} answered as {given} where "
        f"{expected} was asked for: {words.work} stopped, and that reply is not kept. If {given} "
        f"is the {words.who} that you want, set {words.model} to that name; {renamed}"
        f"otherwise start {asked!r} there"
    )


def _collected(batches: Path) -> str:
    return (
        f". The next run collects the same batch, and one with an alias keeps its replies; delete "
        f"{batches} to submit, and pay for, its requests again"
    )
