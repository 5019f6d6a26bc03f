"""Which clips are chosen, so that short ones and long ones are equally many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

N_BINS = 4
"""Of lengths: 3 to 6, 6 to 9, 9 to 12 and 12 to 15 seconds by default."""


def edges_of(min_s: float, max_s: float, n_bins: int = N_BINS) -> list[float]:
    """Lower ends of the bins of length, and the upper end of the last one, in seconds.

    >>> edges_of(3, 15)
    [3.0, 6.0, 9.0, 12.0, 15.0]
    """
    return [min_s + (max_s - min_s) * number / n_bins for number in range(n_bins + 1)]


def bin_of(length_s: float, edges_s: Sequence[float]) -> int:
    """The bin of a length, from 0; what is outside of all counts for the nearest.

    >>> [bin_of(length, [3, 6, 9]) for length in (3, 5.9, 6, 9, 10)]
    [0, 0, 1, 1, 1]
    """
    return sum(length_s >= edge_s for edge_s in edges_s[1:-1])


def quotas(n_there: Sequence[int], n: int) -> list[int]:
    """How many are taken of each bin: equally many, and of a bin that has fewer all.

    Args:
        n_there: How many each bin has, >= 0.
        n: How many are wanted in all.

    Returns:
        Shape of ``n_there``; they sum to ``n``, or to all that there are. Where ``n`` cannot be
        split evenly, the first bins that have more give one more.

    >>> quotas([10, 1, 10, 10], 10), quotas([2, 2], 9)
    ([3, 1, 3, 3], [2, 2])
    """
    taken = [0] * len(n_there)
    left = min(n, sum(n_there))
    while left:
        open_bins = [index for index, there in enumerate(n_there) if taken[index] < there]
        share = max(1, left // len(open_bins))
        for index in open_bins[:left]:
            more = min(share, n_there[index] - taken[index])
            taken[index] += more
            left -= more
    return taken


def choose(
    lengths_s: Sequence[float], n: int, *, edges_s: Sequence[float], rng: np.random.Generator
) -> list[int]:
    """Positions of the clips that are taken, balanced by length and else at random.

    Args:
        lengths_s: Shape (n_clips,), length of each clip in seconds.
        n: How many are wanted, >= 0.
        edges_s: As :func:`edges_of` gives them.
        rng: Draws within each bin.

    Returns:
        ``n`` positions, or all where there are fewer, rising.

    Source:
        VidCapBench, section 3.3.1 (balanced sampling), of which the length is one label.
    """
    bins: list[list[int]] = [[] for _ in edges_s[1:]]
    for position, length_s in enumerate(lengths_s):
        bins[bin_of(length_s, edges_s)].append(position)
    chosen: list[int] = []
    for members, quota in zip(bins, quotas([len(each) for each in bins], n), strict=True):
        drawn = rng.permutation(len(members))[:quota]
        chosen += [members[int(place)] for place in drawn]
    return sorted(chosen)
