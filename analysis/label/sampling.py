"""Which pairs people are asked about: a random sample, or a stratified one, by a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Design:
    """How a sample was drawn, as every label carries it."""

    by: tuple[str, ...]
    """What it is stratified by; empty where all pairs are one stratum."""
    seed: int
    n_population: int
    """Pairs that it was drawn from."""
    n_drawn: int

    def to_row(self, stratum: str, sizes: Mapping[str, int], drawn: Mapping[str, int]) -> object:
        """What stands in a label: the design, and the stratum of its pair."""
        return {
            "kind": "stratified" if self.by else "random",
            **asdict(self),
            "by": list(self.by),
            "stratum": stratum,
            "stratum_size": sizes[stratum],
            "stratum_drawn": drawn[stratum],
        }


def allocate(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """How many are drawn from each stratum: as equal as the strata's sizes allow.

    Args:
        sizes: Stratum to its number of pairs, >= 1.
        n: How many in all, at most all that there are.

    >>> allocate({"a": 100, "b": 3, "c": 50}, 21)
    {'a': 9, 'b': 3, 'c': 9}
    """
    drawn = dict.fromkeys(sizes, 0)
    left = min(n, sum(sizes.values()))
    while left:
        open_strata = [name for name, size in sizes.items() if drawn[name] < size]
        share = max(left // len(open_strata), 1)
        for name in open_strata:
            taken = min(share, sizes[name] - drawn[name], left)
            drawn[name] += taken
            left -= taken
    return drawn


def draw(strata: Sequence[str], n: int, seed: int) -> list[int]:
    """Places of a sample in the order in which they are asked about, which is random.

    So who stops half-way has labelled a random sample, too.

    Args:
        strata: Stratum of each pair.
        n: How many; all where there are no more.
        seed: The same seed draws the same.
    """
    rng = np.random.default_rng(seed)
    sizes = Counter(strata)
    drawn = allocate(dict(sorted(sizes.items())), n)
    places: dict[str, list[int]] = {name: [] for name in drawn}
    for place, name in enumerate(strata):
        places[name].append(place)
    chosen = [
        place for name, count in drawn.items() for place in rng.permutation(places[name])[:count]
    ]
    return [int(place) for place in rng.permutation(chosen)]
