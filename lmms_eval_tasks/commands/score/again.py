"""Captions of which a later run may have more: what kept the judge from answering may pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.reasons import kind_of
from lmms_eval_captions.lmms_eval_tasks.records import NO_CAPTION
from lmms_eval_captions.lmms_eval_tasks.scorer.scorer import NO_CAPTION_GIVEN

_FINAL: Final = frozenset({"unreadable", "empty"})
"""The replies are stored, or the caption is as it is."""


def is_open(reasons: Iterable[str]) -> bool:
    """Whether a later run may have more verdicts on a caption.

    Args:
        reasons: Why questions are unscored.

    >>> is_open(["unreadable reply, asked 4 times"]), is_open(["no caption: none was given"])
    (False, False)
    >>> is_open(["unreadable reply, asked 4 times", "gave up on this request: busy"])
    True
    """
    return any(
        kind_of(reason) not in _FINAL and reason != f"{NO_CAPTION}{NO_CAPTION_GIVEN}"
        for reason in reasons
    )
