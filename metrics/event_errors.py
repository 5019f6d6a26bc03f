"""Error rates of captions against base events (video-SALMONN 2, arXiv 2506.15220)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan


def error_rate(rows: Iterable[Sequence[int]]) -> float:
    """Return errors per 100 base events of all clips together.

    Args:
        rows: Errors and base events of each clip, >= 0.

    Returns:
        Rate >= 0, lower is better; above 100 if captions invent more than there is. ``nan`` without
        a base event.

    >>> error_rate([(1, 10), (3, 10)])
    20.0
    """
    listed = list(rows)
    n_events = sum(events for _, events in listed)
    return 100 * sum(errors for errors, _ in listed) / n_events if n_events else nan
