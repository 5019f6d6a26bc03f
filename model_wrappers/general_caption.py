"""A caption that stands for every aspect of its video, and how that is not lost on the way."""

from __future__ import annotations

from typing import Any, Final

KIND: Final = "general"
"""What a saved caption's field ``captions`` says of one; of any other it says ``aspect``."""
_TEXTS: Final = (
    "__getitem__", "__add__", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix",
    "replace",
)  # fmt: skip
_LISTS: Final = ("split", "rsplit", "partition", "rpartition", "splitlines")


class GeneralCaption(str):
    """A caption of no aspect in particular, used for one: to everybody else its text.

    If a benchmark asks for several captions of a video and a file has one for all of them, the
    score differs and the signature says so. What is cut from the text, as lmms-eval cuts reasoning,
    is a general caption too.

    >>> text = GeneralCaption("<think>Hm.</think> A dog.").rsplit("</think>", 1)[-1].strip()
    >>> text == "A dog.", isinstance(text, GeneralCaption)
    (True, True)
    """

    __slots__ = ()


def _text(name: str) -> Any:  # noqa: ANN401 - a method of texts
    method = getattr(str, name)

    def made(self: GeneralCaption, *args: Any, **options: Any) -> GeneralCaption:  # noqa: ANN401
        return GeneralCaption(method(self, *args, **options))

    return made


def _list(name: str) -> Any:  # noqa: ANN401 - a method of texts
    method = getattr(str, name)

    def made(self: GeneralCaption, *args: Any, **options: Any) -> list[GeneralCaption]:  # noqa: ANN401
        return list(map(GeneralCaption, method(self, *args, **options)))

    return made


for _name in _TEXTS:
    setattr(GeneralCaption, _name, _text(_name))
for _name in _LISTS:
    setattr(GeneralCaption, _name, _list(_name))
