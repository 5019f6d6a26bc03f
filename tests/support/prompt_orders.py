"""Prompts whose words come in another order: what they hold, and a judge that does not mind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final

from judge_server import scripted_reply

_SENTENCE_ENDS: Final = re.compile(r"(?<=[.!?:])\s+|\n+")


def sentences(messages: Sequence[Any]) -> Counter[tuple[str, str]]:
    """Role and text of each sentence of some messages, pictures left out, in no order."""
    return Counter(
        (message["role"], sentence.strip())
        for message in messages
        for sentence in _SENTENCE_ENDS.split(text_of(message))
        if sentence.strip()
    )


def text_of(message: Any) -> str:
    """The words of a message."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def common_beginning(texts: Sequence[str]) -> str:
    """What all texts begin with, empty for none of them."""
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*texts, strict=False))
    return "".join(column[0] for column in columns)


def order_blind_reply(prompt: str) -> str:
    """What the scripted judge says to the same lines in whatever order."""
    if prompt.endswith("\nYour Result:"):
        return scripted_reply(prompt)  # known by its end, and has one order
    return scripted_reply("\n\n".join(["", *sorted(filter(None, prompt.split("\n")))]))
