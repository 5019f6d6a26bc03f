"""Small text helpers that every protocol shares."""

from __future__ import annotations

import hashlib
import re

_TAG = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad)"
# Angle brackets (Seed-OSS with a prefix), Magistral's, Kimi's, and the channels of gpt-oss.
_REASONING = re.compile(
    rf"<((?:[a-z]{{1,12}}:)?{_TAG})>.*?(?:</\1>|\Z)"
    r"|\[think\].*?(?:\[/think\]|\Z)"
    r"|\u25c1think\u25b7.*?(?:\u25c1/think\u25b7|\Z)"
    r"|<\|channel\|>analysis\b.*?(?:<\|channel\|>final<\|message\|>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_BEFORE_END = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def strip_reasoning(text: str) -> str:
    """A reply without its ``<think>`` blocks; one that was cut short inside a block is empty.

    >>> strip_reasoning("<think>yes or no?</think> no ")
    'no'
    >>> strip_reasoning("[THINK]yes?[/THINK] no ")
    'no'
    """
    if not any(sign in text for sign in "<[\u25c1"):
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
    encoded = name.encode("utf-8", "surrogatepass")
    return f"{safe}-{hashlib.blake2b(encoded, digest_size=3).hexdigest()}"
