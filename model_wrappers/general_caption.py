"""A caption that stands for every aspect of its video, and how that is not lost on the way."""

from __future__ import annotations

from typing import Final

KIND: Final = "general"
"""What a saved caption's field ``captions`` says of one; of any other it says ``aspect``."""


class GeneralCaption(str):
    """A caption of no aspect in particular, used for one: to everybody else its text.

    Where a benchmark asks for several captions of a video and a file has one that serves for all,
    the score is another one, and the signature says so.

    >>> GeneralCaption(" A dog. ").strip() == "A dog."
    True
    """

    __slots__ = ()

    def strip(self, chars: str | None = None, /) -> GeneralCaption:
        """As a text does it: lmms-eval strips every answer before it is scored."""
        return GeneralCaption(super().strip(chars))
