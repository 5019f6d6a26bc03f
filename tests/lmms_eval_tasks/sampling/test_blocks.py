"""Strata of questions, and which of their questions are drawn."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.lmms_eval_tasks.sampling.blocks import (
    choose,
    cut_blocks,
    first_counts,
    raised,
    whole_captions,
)

Places = np.ndarray[Any, np.dtype[np.intp]]
sizes_of_strata = st.lists(st.integers(1, 9), min_size=1, max_size=12)
measures = st.lists(st.floats(0.01, 100.0), min_size=2, max_size=80)


def _is_whole(blocks: Places) -> bool:
    counts = Counter(blocks.tolist())
    ascends = all(0 <= two - one <= 1 for one, two in pairwise(blocks.tolist()))
    return bool(blocks[0] == 0 and ascends and (len(blocks) == 1 or min(counts.values()) > 1))


@given(measures, st.integers(2, 100))
def test_strata_of_equal_measure_are_whole(values: list[float], n_drawn: int) -> None:
    """They follow one another without gaps, and none has a single question."""
    assert _is_whole(cut_blocks(np.array(values), n_drawn))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(1, 200))
def test_captions_are_never_divided(sizes: list[int], n_drawn: int) -> None:
    """A caption's questions are of one stratum, and none has a single question."""
    captions = np.repeat(np.arange(len(sizes)), sizes)
    blocks = whole_captions(captions, n_drawn)
    assert _is_whole(blocks)
    assert all(len(set(blocks[captions == one])) == 1 for one in range(len(sizes)))


def test_a_high_measure_stands_for_few() -> None:
    """Questions that vary twice as much are drawn about twice as often (Neyman)."""
    values = np.repeat([1.0, 2.0], 600)
    blocks = cut_blocks(values, 120)
    chosen = choose(
        blocks, np.random.default_rng(0).random(1200), np.full(int(blocks.max()) + 1, 4)
    )
    assert 1.8 < chosen[600:].sum() / chosen[:600].sum() < 2.2


@given(sizes_of_strata, st.integers(0, 2**32 - 1), st.data())
def test_the_smallest_keys_are_drawn(sizes: list[int], seed: int, data: st.DataObject) -> None:
    """Of each stratum as many as are due, those with its smallest keys."""
    blocks = np.repeat(np.arange(len(sizes)), sizes)
    keys = np.random.default_rng(seed).random(len(blocks))
    counts = np.array([data.draw(st.integers(0, size + 2)) for size in sizes])
    chosen = choose(blocks, keys, counts)
    for stratum, size in enumerate(sizes):
        own = keys[blocks == stratum]
        expected = np.sort(own)[: min(size, counts[stratum])]
        assert np.array_equal(np.sort(own[chosen[blocks == stratum]]), expected)


@given(sizes_of_strata, st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_more_are_spread_evenly(sizes: list[int], n_more: int, seed: int) -> None:
    """As many more as there are, evenly among strata that have more, and none is lost."""
    whole = np.array(sizes)
    counts = np.minimum(2, whole)
    more = raised(counts, whole, n_more, np.random.default_rng(seed).random(len(sizes)))
    assert int(more.sum()) == min(int(whole.sum()), int(counts.sum()) + n_more)
    assert (more >= counts).all()
    assert (more <= whole).all()
    open_ones = more[more < whole]
    if len(open_ones):
        assert open_ones.max() - open_ones.min() <= 1 or counts.max() > counts.min()


def test_first_counts_are_in_proportion_on_average() -> None:
    """A part of a question is due as often as it is large; two are drawn at least."""
    blocks = np.repeat(np.arange(3), [10, 20, 2])
    values = np.ones(32)
    rng = np.random.default_rng(3)
    counts = np.array([first_counts(blocks, values, 16, rng.random(3)) for _ in range(4000)])
    assert np.allclose(counts.mean(axis=0)[:2], [5.0, 10.0], atol=0.05)
    assert (counts[:, 2] == 2).all()
