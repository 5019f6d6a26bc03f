"""Numbers on the command line."""

from __future__ import annotations

import argparse
from math import inf


def positive(text: str) -> int:
    """A whole number of at least 1, as ``type`` of an argument.

    Raises:
        argparse.ArgumentTypeError: If the text is none.

    >>> positive("12")
    12
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r:.80}")
    return int(text)


def above_zero(text: str) -> float:
    """A finite number above 0, as ``type`` of an argument.

    Raises:
        argparse.ArgumentTypeError: If the text is none.

    >>> above_zero("0.5")
    0.5
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r:.80}")
    return value


def dollars(text: str) -> float:
    """US dollars above 0, with or without a dollar sign, as ``type`` of an argument.

    Raises:
        argparse.ArgumentTypeError: If the text is none.

    >>> dollars("$20")
    20.0
    """
    return above_zero(text.removeprefix("$"))
