"""Names that are given to an option with commas between them."""

from __future__ import annotations


def split_names(text: str | None) -> list[str]:
    """The names in an option's text, none where it is not given.

    >>> split_names("vdc_score, capquiz,"), split_names(None)
    (['vdc_score', 'capquiz'], [])
    """
    return [name for name in (part.strip() for part in (text or "").split(",")) if name]
