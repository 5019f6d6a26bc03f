r"""Halves of characters: lone surrogates, which no UTF-8 file takes.

JSON can spell one (``"\ud83d"``, half an emoji, where a text was cut), and Python spells the bytes
of a file name that is no UTF-8 with them. lmms-eval writes its sample log as UTF-8: a single one
anywhere in it cuts the log, or ends the run. So each becomes U+FFFD, the sign for what cannot be
shown, where a text enters; two halves that belong together become their character.
"""

from __future__ import annotations

import re
from typing import Final

_HALF: Final = re.compile("[\ud800-\udfff]")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89aAbB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def whole(text: str) -> str:
    r"""A text that can be written as UTF-8; itself where it can be already.

    >>> whole("a dog \ud83d") == "a dog \ufffd", whole("\ud83d\ude00") == "\U0001f600"
    (True, True)
    """
    if text.isascii() or _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_json(text: str) -> str:
    r"""JSON whose strings can all be written as UTF-8; itself where they can be already.

    >>> whole_json(r'["\ud83d", "\ud83d\ude00", "\\ud83d"]')
    '["\\ufffd", "\\ud83d\\ude00", "\\\\ud83d"]'
    """
    if "\\ud" not in text and "\\uD" not in text:
        return text if text.isascii() else whole(text)
    return whole(_ESCAPE.sub(lambda match: "\\ufffd" if match[1] else match[0], text))
