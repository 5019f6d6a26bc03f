"""Sentences that a person reads last on the screen: one line, none too long."""

from __future__ import annotations

from typing import Final

MOST: Final = 300
"""Characters of a sentence."""
_CUT: Final = " ... "


def sentence(text: str, most: int = MOST) -> str:
    r"""Return a text as one line of at most so many characters.

    The middle of a longer one is left out: what is wrong stands first, and what helps last.

    >>> sentence("one\n  two"), sentence("0123456789abcdef", 11)
    ('one two', '012 ... def')
    """
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    n_last = (most - len(_CUT)) // 2
    return line[: most - len(_CUT) - n_last] + _CUT + line[len(line) - n_last :]
