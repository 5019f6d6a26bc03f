"""Reasoning in a reply, which is never an answer."""

from __future__ import annotations

import re
from typing import Final

_TAG = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad)"
_REASONING: Final = re.compile(
    # <think>..., <seed:think>... (Seed-OSS)
    rf"<((?:[a-z]{{1,12}}:)?{_TAG})>.*?(?:</\1>|\Z)"
    # Magistral
    r"|\[think\].*?(?:\[/think\]|\Z)"
    # Kimi
    r"|\u25c1think\u25b7.*?(?:\u25c1/think\u25b7|\Z)"
    # gpt-oss, with its special tokens
    r"|(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)\b.*?"
    r"(?:<\|channel\|>final<\|message\|>|\Z)"
    # Gemma: <unused94>thought ... <unused95>, <|channel>thought ... <channel|>
    r"|<unused94>.*?(?:<unused95>|\Z)|<\|channel>thought\b.*?(?:<channel\|>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_BARE_HARMONY: Final = re.compile(
    r"\A(?:assistant)?analysis(?=[A-Z\s]).*?(?:assistant(?:final|commentary)|\Z)", re.DOTALL
)
"""Reasoning of gpt-oss if a server drops the special tokens: ``analysis...assistantfinal...``."""
_BEFORE_END: Final = re.compile(
    r"\A.*(?:</think(?:ing)?>|\[/THINK\]|\u25c1/think\u25b7|<unused95>)", re.DOTALL | re.IGNORECASE
)
_MARKS: Final = re.compile(
    r"<\|(?:begin_of_box|end_of_box|message|return|end)\|>|<\|channel\|>final|</?answer>"
)
"""Tokens around an answer, of GLM and gpt-oss."""


def strip_reasoning(text: str) -> str:
    """Return a reply without its reasoning; one that was cut inside its reasoning is empty.

    >>> strip_reasoning("<think>yes or no?</think> no ")
    'no'
    >>> strip_reasoning("[THINK]yes?[/THINK] no ")
    'no'
    >>> strip_reasoning("analysisA cat? No.assistantfinalA dog.")
    'A dog.'
    """
    text = text.strip()
    if text.startswith(("analysis", "assistantanalysis")):
        text = _BARE_HARMONY.sub("", text).strip()
    if not any(sign in text for sign in "<[\u25c1"):
        return text
    text = _REASONING.sub("", text)
    # Some servers strip the opening tag alone.
    return _MARKS.sub("", _BEFORE_END.sub("", text)).strip()
