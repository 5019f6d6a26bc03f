"""What stands for a caption that is not there, and how an empty one is told."""

from __future__ import annotations

import re
from typing import Final

from lmms_eval_captions.judges.files import whole

_WORD: Final = re.compile(r"\w")


class NoCaption(str):
    """Stands for a caption that is not there: to everybody else an empty text.

    A captioner that returns it says that the fault is not its own words: the clip could not be
    read, the endpoint gave no reply, a file has no such row. The questions about it are unscored
    with that reason, while those about an empty caption are judged as about one that says nothing.
    lmms-eval's caches leave empty texts out, so that the clip is captioned again by a rerun.

    >>> NoCaption("the clip is broken") == "", NoCaption("the clip is broken").reason
    (True, 'the clip is broken')
    """

    __slots__ = ("reason",)

    reason: str
    """Why there is none."""

    def __new__(cls, reason: str) -> NoCaption:
        """An empty text that knows why it is one."""
        self = super().__new__(cls, "")
        self.reason = whole(reason)
        return self

    def __getnewargs__(self) -> tuple[str]:
        return (self.reason,)

    def strip(self, chars: str | None = None, /) -> NoCaption:  # noqa: ARG002 - of texts
        """Itself: lmms-eval strips every answer before it is scored."""
        return self


class DroppedCaption(NoCaption):
    """Stands for a caption that is not there and is left out of the task, as was asked for.

    Its questions are neither asked nor unscored: scores are those of the other captions, and their
    signatures say of how many (``dropped``).
    """

    __slots__ = ()


def says_nothing(caption: str) -> bool:
    """Whether a caption has no word at all.

    >>> says_nothing(" ... "), says_nothing("A dog.")
    (True, False)
    """
    return _WORD.search(caption) is None
