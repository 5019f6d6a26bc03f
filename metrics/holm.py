"""P-values of several comparisons shown together."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values: below 0.05 where a difference stands although several were looked at.

    The chance that any of the differences that are none comes out below 0.05 is at most 5 %,
    however they depend on one another, as aspects of the same captions do.

    Args:
        p_values: Shape (n_comparisons,), in [0, 1]; ``None`` is a comparison that could not be
            made, and does not count.

    Returns:
        Adjusted p-values in the same order, in [0, 1], each at least the one that came.

    Raises:
        ValueError: If a p-value is outside [0, 1].

    Source:
        Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of
        Statistics 6 (1979), section 3.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    made = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(made):
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"holm: expected p-values between 0 and 1, got {p!r}")
        largest = max(largest, min(1.0, (len(made) - rank) * p))
        adjusted[place] = largest
    return adjusted
