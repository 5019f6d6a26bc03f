"""Clips are chosen so that short ones and long ones are equally many."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.balance import choose, quotas

EDGES = [3.0, 6.0, 9.0, 12.0, 15.0]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.integers(0, 100))
def test_no_bin_gives_less_than_another_but_where_it_has_no_more(
    n_there: list[int], n: int
) -> None:
    """As if clips were dealt out one by one, to each bin in turn that has one left."""
    dealt = [0] * len(n_there)
    left = min(n, sum(n_there))
    while left:
        for index, there in enumerate(n_there):
            if left and dealt[index] < there:
                dealt[index] += 1
                left -= 1
    assert quotas(n_there, n) == dealt


def test_the_choice_is_even_over_lengths() -> None:
    """Of many short clips and few long ones equally many of each length are taken."""
    lengths = [4.0] * 50 + [7.0] * 20 + [10.0] * 10 + [14.0, 15.0]
    chosen = choose(lengths, 20, edges_s=EDGES, rng=np.random.default_rng(0))
    counts = np.histogram([lengths[place] for place in chosen], bins=EDGES)[0]
    assert counts.tolist() == [6, 6, 6, 2]
    assert chosen == sorted(set(chosen))


def test_the_seed_decides_which() -> None:
    """The same seed takes the same clips, another one others."""
    lengths = [4.0] * 100

    def drawn(seed: int) -> list[int]:
        return choose(lengths, 10, edges_s=EDGES, rng=np.random.default_rng(seed))

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
