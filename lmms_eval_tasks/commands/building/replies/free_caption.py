"""Reading a caption in free words that questions are made of, or judged by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.objects import said

CaptionFault = Literal["empty", "repeats itself", "data"]
"""Why a reply is no caption: it says nothing, the same again and again, or is an object of JSON in
the place of words."""

_OBJECT: Final = re.compile(r"(?:```[a-z]{0,9}\s{0,9})?\[?\s{0,9}\{\s{0,99}[\"']")
_MOST_WORDS: Final = 20_000
"""What is behind them does not tell whether a caption is a loop."""
_N_WORDS: Final = 8
"""Words in a row that a description hardly says twice."""
_LEAST: Final = 48
"""Rows of words from which on repetition tells a model in a loop."""


def read_free_caption(reply: Reply) -> str | None:
    """The caption that a reply is, ``None`` where :func:`free_caption_fault` says why it is none.

    >>> read_free_caption(Reply("<think>A dog?</think> A dog runs. ", "stop"))
    'A dog runs.'
    """
    return said(reply.text) if free_caption_fault(reply.text) is None else None


def free_caption_fault(text: str) -> CaptionFault | None:
    """Why a reply of this text is no caption, ``None`` where it is one. Linear in its length.

    >>> free_caption_fault("It turns, and it turns again. " * 40)
    'repeats itself'
    """
    caption = said(text).lstrip()
    words = caption.casefold().split(maxsplit=_MOST_WORDS)[:_MOST_WORDS]
    if not words:
        return "empty"
    if _OBJECT.match(caption):
        return "data"
    rows = [_row(words, start) for start in range(len(words) - _N_WORDS + 1)]
    is_loop = len(rows) >= _LEAST and 2 * len(set(rows)) < len(rows)
    return "repeats itself" if is_loop else None


def _row(words: Sequence[str], start: int) -> tuple[str, ...]:
    return tuple(words[start : start + _N_WORDS])
