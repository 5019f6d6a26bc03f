"""Captions that are missing, empty, or stand for every aspect of their video."""

from __future__ import annotations

import re
from typing import Any, Final

from lmms_eval_captions.judges.files import whole

_WORD: Final = re.compile(r"\w")
KIND: Final = "general"
"""Value of a saved caption's field ``captions`` if it is a general one."""


class NoCaption(str):
    """A missing caption; to everybody else an empty text.

    The clip could not be read, the endpoint gave no reply, a file has no such row. The questions
    about it are unscored with that reason, while those about an empty caption are judged.
    lmms-eval's caches leave empty texts out, so a rerun captions the clip again.

    >>> NoCaption("the clip is broken") == "", NoCaption("the clip is broken").reason
    (True, 'the clip is broken')
    """

    __slots__ = ("reason",)

    reason: str
    """Reason why it is missing."""

    def __new__(cls, reason: str) -> NoCaption:
        """Return an empty text with a reason."""
        self = super().__new__(cls, "")
        self.reason = whole(reason)
        return self

    def __getnewargs__(self) -> tuple[str]:
        return (self.reason,)

    def strip(self, chars: str | None = None, /) -> NoCaption:  # noqa: ARG002 - of texts
        """Return itself: lmms-eval strips every answer before it is scored."""
        return self


class DroppedCaption(NoCaption):
    """A missing caption that is left out of the task, as the user wants.

    Its questions are neither asked nor unscored: scores are those of the other captions, and their
    signatures count it (``dropped``).
    """

    __slots__ = ()


def says_nothing(caption: str) -> bool:
    """Return if a caption has no word at all.

    >>> says_nothing(" ... "), says_nothing("A dog.")
    (True, False)
    """
    return _WORD.search(caption) is None


class GeneralCaption(str):
    """A caption of no aspect in particular that is used for one; to everybody else its text.

    If a benchmark asks for several captions of a video and a file has one that serves for all, the
    score is another one, and the signature says so. What is cut from the text, as lmms-eval cuts
    reasoning, is a general caption too.

    >>> text = GeneralCaption("<think>Hm.</think> A dog.").rsplit("</think>", 1)[-1].strip()
    >>> text == "A dog.", isinstance(text, GeneralCaption)
    (True, True)
    """

    __slots__ = ()


def _general(name: str) -> Any:  # noqa: ANN401 - a method of texts
    def made(self: GeneralCaption, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        cut = getattr(str, name)(self, *args, **options)
        return GeneralCaption(cut) if isinstance(cut, str) else list(map(GeneralCaption, cut))

    return made


for _name in (
    "__getitem__", "__add__", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix",
    "replace", "split", "rsplit", "partition", "rpartition", "splitlines",
):  # fmt: skip
    setattr(GeneralCaption, _name, _general(_name))
