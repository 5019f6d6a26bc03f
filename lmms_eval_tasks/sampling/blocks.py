"""Strata of a few questions each, and which of their questions are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

PER_BLOCK: Final = 4
"""Questions that are drawn of a stratum at first, about. Of fewer, one more would be too many."""
LEAST: Final = 2
"""The fewest that tell how much a stratum varies."""


def cut_blocks(measures: Floats, n_drawn: int) -> Places:
    """Cut questions, in their order, into strata of equal measure.

    As many of each are drawn, so that one of a high measure stands for few others. With the
    standard deviation of a question as its measure, this is Neyman's allocation.

    Args:
        measures: Shape (n_questions,), > 0, in the order in which neighbours are alike.
        n_drawn: Questions that are to be drawn in all, >= 2.

    Returns:
        The stratum of each question, 0, 1, ..., ascending; each has two questions or more, but for
        that of a single question.

    Source:
        Neyman (Journal of the Royal Statistical Society 97, 1934); Cochran, Sampling Techniques
        (1977), section 5.5.

    >>> cut_blocks(np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 3.0]), 8).tolist()
    [0, 0, 0, 0, 0, 0, 1, 1]
    """
    n_blocks = max(1, n_drawn // PER_BLOCK)
    ends = np.cumsum(measures)
    # A question is where its middle lies.
    middles = (ends - measures / 2) / ends[-1]
    blocks = np.minimum((middles * n_blocks).astype(np.intp), n_blocks - 1)
    return _whole(blocks)


def whole_captions(captions: Places, n_drawn: int) -> Places:
    """Strata of whole captions: one each, or as many as it takes for a few questions to be drawn.

    Args:
        captions: Shape (n_questions,): the caption of each, those of one next to each other.
        n_drawn: Questions that are to be drawn in all, >= 1.

    Returns:
        The stratum of each question, 0, 1, ..., ascending; each has two questions or more, but for
        that of a single question.

    >>> whole_captions(np.array([7, 7, 3, 3, 5, 5]), 2).tolist()
    [0, 0, 0, 0, 0, 0]
    >>> whole_captions(np.array([7, 7, 7, 7, 7, 3, 3, 3, 3, 3]), 4).tolist()
    [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    """
    numbers = np.cumsum(np.r_[0, captions[1:] != captions[:-1]])
    n_captions = int(numbers[-1]) + 1
    n_each = max(1, -(-LEAST * n_captions // n_drawn))
    n_blocks = max(1, n_captions // n_each)
    return _whole(numbers * n_blocks // n_captions)


def first_counts(blocks: Places, measures: Floats, n_drawn: int, keys: Floats) -> Places:
    """How many are drawn of each stratum at first: in proportion to its measure, two at least.

    Args:
        blocks: Shape (n_questions,): their strata, 0, 1, ...
        measures: Shape (n_questions,): the standard deviation of each.
        n_drawn: To be drawn in all, about.
        keys: Shape (n_strata,): random numbers that decide where a part of a question is due.

    >>> blocks, keys = np.array([0, 0, 0, 1, 1, 1]), np.array([0.4, 0.6])
    >>> first_counts(blocks, np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), 5, keys).tolist()
    [2, 3]
    """
    due = np.bincount(blocks, measures) * (n_drawn / float(measures.sum()))
    counts = np.maximum(LEAST, np.floor(due + keys)).astype(np.intp)
    return np.asarray(np.minimum(counts, np.bincount(blocks)))


def choose(blocks: Places, keys: Floats, counts: Places) -> NDArray[np.bool_]:
    """The questions of each stratum with the smallest keys.

    Args:
        blocks: Shape (n_questions,): their strata, 0, 1, ...
        keys: Shape (n_questions,): random numbers.
        counts: Shape (n_strata,): how many of each; all of one that has no more.

    Returns:
        Shape (n_questions,).

    >>> choose(np.array([0, 0, 0, 1]), np.array([0.3, 0.1, 0.2, 0.9]), np.array([2, 2])).tolist()
    [False, True, True, True]
    """
    order = np.lexsort((keys, blocks))
    starts = np.searchsorted(blocks[order], np.arange(len(counts)))
    ranks = np.arange(len(blocks)) - starts[blocks[order]]
    is_chosen = np.zeros(len(blocks), dtype=bool)
    is_chosen[order] = ranks < counts[blocks[order]]
    return is_chosen


def raised(counts: Places, sizes: Places, n_more: int, keys: Floats) -> Places:
    """More questions of strata of which some are drawn, as many of each as far as they have them.

    Strata are of equal measure, so that this is Neyman's allocation again.

    Args:
        counts: Shape (n_strata,): drawn of each.
        sizes: Shape (n_strata,): questions of each.
        n_more: To be drawn beside them.
        keys: Shape (n_strata,): random numbers; the smallest go first where not all have one more.

    Returns:
        Shape (n_strata,): at least ``counts``, at most ``sizes``.

    >>> raised(np.array([2, 2, 2]), np.array([3, 9, 9]), 4, np.array([0.3, 0.2, 0.1])).tolist()
    [3, 3, 4]
    """
    counts = counts.copy()
    order = np.argsort(keys, kind="stable")
    while n_more > 0:
        with_more = order[counts[order] < sizes[order]]
        if not len(with_more):
            break
        n_rounds = max(1, min(n_more // len(with_more), int((sizes - counts)[with_more].min())))
        taken = with_more if n_more >= len(with_more) else with_more[:n_more]
        counts[taken] += n_rounds
        n_more -= n_rounds * len(taken)
    return counts


def _whole(blocks: Places) -> Places:
    """Strata without gaps, those of one question joined to the one before or behind."""
    numbers = np.unique(blocks, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(numbers)
    joined = np.arange(len(counts))
    for place in np.flatnonzero(counts == 1):
        joined[place] = joined[place - 1] if place else 0
    if len(counts) > 1 and counts[0] == 1:
        joined[joined == 0] = joined[1]
    return np.unique(joined[numbers], return_inverse=True)[1].reshape(-1)
