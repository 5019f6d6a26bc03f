"""Expected score of G-VEval."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum


def gveval_expectation(distribution: Sequence[tuple[float, float]]) -> float:
    """Expectation of a score over the numbers that the judge might have written.

    Args:
        distribution: Shape (n_numbers, 2), a number and its probability > 0 each, n_numbers >= 1;
            they are scaled to sum to 1. The plain number of an endpoint without probabilities is
            one number with probability 1.

    Returns:
        Score within the range of the numbers, higher is better.

    Raises:
        ValueError: If there is no number, or a probability is not above 0.

    Source:
        G-VEval, section 3.4, equation 1, approximated by one reason as its equation 3 says;
        ztangaj/gveval@fee3fd7:evaluation/gveval/scorer.py. Parity: scaled as there, where
        alternatives that the endpoint did not list leave the sum below 1.

    >>> gveval_expectation([(80, 0.25), (90, 0.75)])
    87.5
    """
    if not distribution or not all(share > 0.0 for _, share in distribution):
        raise ValueError(f"gveval_expectation: expected probabilities > 0, got {distribution!r}")
    total = fsum(share for _, share in distribution)
    mean = fsum(number * share for number, share in distribution) / total
    numbers = [number for number, _ in distribution]
    # Rounding must not lead out of the range.
    return float(min(max(mean, min(numbers)), max(numbers)))
