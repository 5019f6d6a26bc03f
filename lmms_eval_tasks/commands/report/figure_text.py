"""Anybody's words in a figure: plain text, in letters that the font has, in the room there is."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.surrogates import whole

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

FONT: Final = 8
FAMILY: Final = "DejaVu Sans"
_NO_GLYPH: Final = "\N{WHITE SQUARE}"


def shown(text: str, points: float, size: float = FONT) -> str:
    """A text as a figure shows it, on one line: cut where it is wider than there is room.

    Args:
        text: Anybody's words.
        points: Room for it.
        size: Of its letters, in points.
    """
    text = _plain(text)
    if width_of(text, size) <= points:
        return text
    room = points - width_of("...", size)
    while text and width_of(text, size) > room:
        text = text[:-1]
    return f"{text.rstrip()}..."


def width_of(text: str, size: float = FONT) -> float:
    """The width of a text of :func:`shown` in points."""
    return sum(_advance(character) or 0.0 for character in text) * size


def _plain(text: str) -> str:
    """Without what moves or hides other letters, and a square where the font has no letter."""
    kept = []
    for character in whole(text):
        category = unicodedata.category(character)
        if category in ("Cc", "Zl", "Zp"):
            kept.append(" ")
        elif category != "Cf":
            kept.append(character)
    words = " ".join("".join(kept).split())
    return "".join(c if _advance(c) is not None else _NO_GLYPH for c in words)


@cache
def _advance(character: str) -> float | None:
    """Width of a character in the size of the font; ``None`` where the font has none."""
    font = _font()
    if not font.get_char_index(ord(character)):
        return None
    from matplotlib.ft2font import LoadFlags

    glyph = font.load_char(ord(character), flags=LoadFlags.NO_HINTING)
    return float(glyph.linearHoriAdvance / 65536 / FONT)


@cache
def _font() -> FT2Font:
    from matplotlib.font_manager import FontProperties, findfont
    from matplotlib.ft2font import FT2Font as NewFont

    font = NewFont(findfont(FontProperties(family=FAMILY)))
    font.set_size(FONT, 72)
    return font
