"""Gwet's AC1: agreement beyond chance that holds where nearly all units are of one category."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lmms_eval_captions.metrics.ratings import Floats, Rating, Ratings, ratings_of


def gwet_ac1(
    ratings: Sequence[Sequence[Rating | None]], *, categories: Sequence[Rating] = ()
) -> float:
    """Agreement of several raters, whose chance part is small where one category is common.

    Args:
        ratings: Shape (n_units, n_raters), labels; ``None`` is missing.
        categories: All labels that raters could have chosen, also those that nobody chose; without,
            those that occur, and two where fewer do.

    Returns:
        (p_a - p_e) / (1 - p_e), at most 1, higher is better, 0 is chance; ``nan`` where no unit
        has two labels. Units with one label count in the shares of the categories alone.

    Source:
        Gwet, Computing inter-rater reliability and its variance in the presence of high agreement
        (2008), equations 5 to 7; with missing labels: Handbook of Inter-Rater Reliability, 4th
        edition (2014), chapter 2. The example is the paradox of kappa from Gwet, Kappa statistic
        is not satisfactory (2002): AC1 0.941 where kappa is -0.023.

    >>> pairs = [("+", "+")] * 118 + [("+", "-")] * 5 + [("-", "+")] * 2
    >>> round(gwet_ac1(pairs), 3)
    0.941
    """
    coded = ratings_of(ratings, categories)
    return float(ac1_of(ac1_parts(coded).sum(axis=0)))


def ac1_parts(ratings: Ratings) -> Floats:
    """What each unit adds to the agreement and to the shares of the categories.

    Returns:
        Shape (n_units, 2 + n_categories), n_categories at least 2: the share of pairs of its
        raters that agree, 1 where it has such pairs, and the share of its raters for each category.
    """
    counts = ratings.counts()
    if counts.shape[1] < 2:
        counts = np.pad(counts, ((0, 0), (0, 2 - counts.shape[1])))
    n_raters = counts.sum(axis=1)
    has_pairs = n_raters >= 2
    n_pairs = np.where(has_pairs, n_raters * (n_raters - 1), 1.0)
    agreeing = (counts * (counts - 1)).sum(axis=1) / n_pairs
    shares = counts / np.maximum(n_raters, 1)[:, None]
    return np.column_stack([np.where(has_pairs, agreeing, 0.0), has_pairs, shares])


def ac1_of(sums: Floats) -> Floats:
    """AC1 of sums over units.

    Args:
        sums: Shape (..., 2 + n_categories), see :func:`ac1_parts`.

    Returns:
        Shape (...); ``nan`` where it has no value.
    """
    shares = sums[..., 2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = np.where(sums[..., 1] > 0, sums[..., 0] / sums[..., 1], np.nan)
        shares = shares / shares.sum(axis=-1, keepdims=True)
        expected = (shares * (1 - shares)).sum(axis=-1) / (shares.shape[-1] - 1)
        ac1: Floats = np.asarray((observed - expected) / (1 - expected))
    return ac1
