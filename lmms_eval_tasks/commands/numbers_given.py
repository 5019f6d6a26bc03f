"""Numbers on the command line."""

from __future__ import annotations

import argparse


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
