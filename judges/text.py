"""Small text helpers that every protocol shares."""

from __future__ import annotations

import hashlib
import re

_TAG = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad)"
_REASONING = re.compile(rf"<({_TAG})>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_BEFORE_END = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def strip_reasoning(text: str) -> str:
    """A reply without its ``<think>`` blocks; one that was cut short inside a block is empty.

    >>> strip_reasoning("<think>yes or no?</think> no ")
    'no'
    """
    if "<" not in text:
        return text.strip()
    text = _REASONING.sub("", text)
    # Some servers strip the opening tag alone.
    return _BEFORE_END.sub("", text).strip()


def slug(name: str) -> str:
    """A name fit for a folder, different for different names.

    >>> slug("gpt-4o-2024-08-06")
    'gpt-4o-2024-08-06'
    >>> slug("meta-llama/Llama-3.1-8B-Instruct")
    'meta-llama-Llama-3.1-8B-Instruct-c6da5c'
    """
    safe = _UNSAFE.sub("-", name)[:80].strip(".-")
    if safe == name:
        return name
    return f"{safe}-{hashlib.blake2b(name.encode(), digest_size=3).hexdigest()}"
