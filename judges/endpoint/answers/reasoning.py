"""What a judge thinks before it answers, told from the answer."""

from __future__ import annotations

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
