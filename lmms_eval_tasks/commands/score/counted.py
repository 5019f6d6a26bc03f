"""Numbers of things in words."""

from __future__ import annotations


def counted(n: int, what: str) -> str:
    """A number with its noun.

    Args:
        n: How many.
        what: One of them.

    >>> counted(1, "row"), counted(2_000, "row"), counted(0, "file")
    ('1 row', '2,000 rows', '0 files')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"
