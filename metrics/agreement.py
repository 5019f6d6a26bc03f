"""How far raters agree: shares, kappa, AC1, alpha and their intervals; judge runs that agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import nan
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.metrics.clusters import (
    Floats,
    Line,
    Rating,
    Ratings,
    jackknife_interval,
    ratings_of,
    sums_of_clusters,
)
from lmms_eval_captions.metrics.intervals import Interval


def cohen_kappa(first: Sequence[Rating | None], second: Sequence[Rating | None]) -> float:
    """Agreement of two raters beyond what their own shares of categories give by chance.

    Args:
        first: Shape (n_units,), labels of one rater; ``None`` is missing.
        second: The same units by the other rater. A unit that lacks a label counts nowhere.

    Returns:
        (p_o - p_e) / (1 - p_e) in [-1, 1], higher is better, 0 is chance; ``nan`` where no unit
        has both labels, or both raters gave all of them one and the same category.

    Raises:
        ValueError: If the raters have different numbers of units.

    Source:
        Cohen, A Coefficient of Agreement for Nominal Scales (1960), equation 1. The example is
        Fleiss, Levin and Paik, Statistical Methods for Rates and Proportions (2003), Table 18.1:
        0.68.

    >>> pairs = [("a", "a")] * 75 + [("a", "b")] + [("a", "c")] * 4 + [("b", "a")] * 5
    >>> pairs += [("b", "b")] * 4 + [("b", "c")] + [("c", "c")] * 10
    >>> round(cohen_kappa(*zip(*pairs)), 3)
    0.676
    """
    if len(first) != len(second):
        raise ValueError(f"cohen_kappa: expected equal lengths, got {len(first)} and {len(second)}")
    if not first:
        return nan
    parts = kappa_parts(ratings_of(list(zip(first, second, strict=True))))
    return float(kappa_of(parts.sum(axis=0)))


def kappa_parts(ratings: Ratings) -> Floats:
    """What each unit adds to the table of two raters' categories.

    Args:
        ratings: Of two raters.

    Returns:
        Shape (n_units, n_categories, n_categories): 1 at the categories of the first and the
        second rater; all 0 where one is missing.
    """
    if ratings.codes.shape[1] != 2:
        raise ValueError(f"cohen_kappa: expected 2 raters, got {ratings.codes.shape[1]}")
    marks = (np.arange(len(ratings.categories)) == ratings.codes[:, :, None]).astype(np.float64)
    parts: Floats = marks[:, 0, :, None] * marks[:, 1, None, :]
    return parts


def kappa_of(tables: Floats) -> Floats:
    """Kappa of tables of counts.

    Args:
        tables: Shape (..., n_categories, n_categories).

    Returns:
        Shape (...); ``nan`` where it has no value.

    >>> float(kappa_of(np.array([[20.0, 5.0], [10.0, 15.0]])))
    0.4
    """
    total = tables.sum(axis=(-2, -1))
    observed = np.trace(tables, axis1=-2, axis2=-1) * total
    expected = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa: Floats = np.asarray((observed - expected) / (total**2 - expected))
    return kappa


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


Level = Literal["nominal", "ordinal", "interval"]
"""What ratings are: labels; labels in an order, worst first; numbers."""


def krippendorff_alpha(
    ratings: Sequence[Sequence[Rating | None]], *, level: Level, categories: Sequence[Rating] = ()
) -> float:
    """One less the disagreement within units, of that which chance would give.

    Args:
        ratings: Shape (n_units, n_raters); ``None`` is missing. Units with fewer than two ratings
            count nowhere.
        level: How far apart two ratings are: nominal 0 or 1; ordinal by how many ratings lie
            between them; interval by the square of their difference.
        categories: Order of the ratings for ``ordinal``; without, the values sorted.

    Returns:
        At most 1, higher is better, 0 is chance; ``nan`` where no unit has two ratings, or all
        ratings are equal.

    Raises:
        TypeError: If ratings of the level ``interval`` are no numbers.

    Source:
        Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), sections C to E. The
        example is that of section C: nominal 0.743, ordinal 0.815, interval 0.849.

    >>> a, b = "123321412...", "1233224125.3"
    >>> c, d = ".3332342251.", "1233244125 1.".replace(" ", "")
    >>> units = [[None if each == "." else int(each) for each in unit] for unit in zip(a, b, c, d)]
    >>> [round(krippendorff_alpha(units, level=level), 3) for level in ("nominal", "ordinal")]
    [0.743, 0.815]
    >>> round(krippendorff_alpha(units, level="interval"), 3)
    0.849
    """
    coded = ratings_of(ratings, categories)
    return float(alpha_value(level)(alpha_parts(coded, level=level).sum(axis=0)))


def alpha_parts(ratings: Ratings, *, level: Level) -> Floats:
    """What each unit adds to alpha.

    Returns:
        For ``nominal`` and ``ordinal`` the unit's coincidences, shape (n_units, n_categories,
        n_categories), see Krippendorff's section C. For ``interval``, whose values may be many,
        shape (n_units, 4): number of ratings, their sum and sum of squares, and the squared
        differences of its pairs over its number of ratings less 1. All 0 where a unit has fewer
        than two ratings.
    """
    if level == "interval":
        return _moments(ratings)
    counts = ratings.counts()
    n_ratings = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :]
    places = np.arange(counts.shape[1])
    pairs[:, places, places] -= counts
    weights = np.where(n_ratings >= 2, 1.0 / np.maximum(n_ratings - 1, 1), 0.0)
    coincidences: Floats = pairs * weights[:, None, None]
    return coincidences


def alpha_value(level: Level) -> Callable[[Floats], Floats]:
    """From sums of :func:`alpha_parts`, shape (..., as there), to alpha, shape (...)."""
    if level == "interval":
        return _of_moments
    return partial(_of_coincidences, is_ordinal=level == "ordinal")


def _of_coincidences(sums: Floats, *, is_ordinal: bool) -> Floats:
    totals = sums.sum(axis=-1)
    distances = _ordinal_distances(totals) if is_ordinal else 1.0 - np.eye(totals.shape[-1])
    observed = (sums * distances).sum(axis=(-2, -1))
    expected = (totals[..., :, None] * totals[..., None, :] * distances).sum(axis=(-2, -1))
    return _alpha(observed, expected, totals.sum(axis=-1))


def _ordinal_distances(totals: Floats) -> Floats:
    """Squared number of ratings from one category to another, half of both ends."""
    middles = totals.cumsum(axis=-1) - totals / 2
    distances: Floats = (middles[..., :, None] - middles[..., None, :]) ** 2
    return distances


def _moments(ratings: Ratings) -> Floats:
    if not all(isinstance(each, int | float) for each in ratings.categories):
        raise TypeError(f"krippendorff_alpha: expected numbers, got {ratings.categories!r:.80}")
    is_there = ratings.codes >= 0
    is_there &= is_there.sum(axis=1, keepdims=True) >= 2
    numbers = np.array([*ratings.categories, 0.0], dtype=np.float64)
    # From one of them, so that equal ratings are exactly 0 and squares of large ones do not swallow
    # the differences.
    origin = numbers[ratings.codes[is_there][0]] if is_there.any() else 0.0
    values = np.where(is_there, numbers[ratings.codes] - origin, 0.0)
    n_ratings = is_there.sum(axis=1).astype(np.float64)
    first, second = values.sum(axis=1), (values**2).sum(axis=1)
    apart = 2 * (n_ratings * second - first**2) / np.maximum(n_ratings - 1, 1)
    return np.column_stack([n_ratings, first, second, apart])


def _of_moments(sums: Floats) -> Floats:
    n_ratings, first, second, observed = np.moveaxis(sums, -1, 0)
    return _alpha(observed, 2 * (n_ratings * second - first**2), n_ratings)


def _alpha(observed: Floats, expected: Floats, n_ratings: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(expected > 0, (n_ratings - 1) * observed / expected, np.nan)
    return np.asarray(1 - ratio)


Coefficient = Literal["kappa", "ac1", "nominal", "ordinal", "interval"]
"""Cohen's kappa, Gwet's AC1, or the level of Krippendorff's alpha."""

_DISAGREEMENT: Final = Line(
    name="log(1 - agreement)", to=lambda x: np.log(1 - x), back=lambda z: 1 - np.exp(z)
)
"""The logarithm of the disagreement relative to chance."""


def agreement_interval(
    ratings: Ratings,
    videos: NDArray[np.intp],
    *,
    coefficient: Coefficient,
    level: float = 0.95,
) -> Interval:
    """Agreement beyond chance with its interval over videos, whose questions are one cluster.

    Args:
        ratings: Shape (n_units, n_raters); of two raters for ``kappa``.
        videos: Shape (n_units,), the place of each unit's video, from 0.
        coefficient: What is computed.
        level: Share of such intervals that cover, in (0, 1).

    Returns:
        The coefficient as :func:`cohen_kappa`, :func:`gwet_ac1` or :func:`krippendorff_alpha`
        gives it, with its interval. Units that lack a rating count as they do there.

    Source:
        :func:`jackknife_interval` of log(1 - coefficient), the disagreement relative to chance:
        where every simulation has a disagreement, with 30 videos and coefficients of 0.6 to 0.9 it
        covers 94 to 97 %, the plain jackknife 90 to 93 %.

    >>> from lmms_eval_captions.metrics.clusters import ratings_of
    >>> pairs = [("a", "a"), ("b", "b"), ("a", "b"), ("b", "b"), ("b", "b"), ("a", "a")] * 4
    >>> videos = np.arange(24) // 2
    >>> found = agreement_interval(ratings_of(pairs), videos, coefficient="kappa")
    >>> [round(each, 3) for each in (found.value, found.low, found.high, found.standard_error)]
    [0.667, 0.103, 0.876, 0.142]
    """
    parts, value_of = _parts_of(ratings, coefficient)
    sums = sums_of_clusters(parts, videos)
    return jackknife_interval(sums, value_of, line=_DISAGREEMENT, level=level)


def _parts_of(
    ratings: Ratings, coefficient: Coefficient
) -> tuple[Floats, Callable[[Floats], Floats]]:
    """What units add to a coefficient, and how it comes of their sums."""
    if coefficient == "kappa":
        return kappa_parts(ratings), kappa_of
    if coefficient == "ac1":
        return ac1_parts(ratings), ac1_of
    if coefficient not in get_args(Level):
        raise ValueError(f"agreement_interval: no coefficient {coefficient!r}")
    return alpha_parts(ratings, level=coefficient), alpha_value(coefficient)


def pairwise_accuracy(better: Sequence[float], worse: Sequence[float]) -> float:
    """Share of pairs in which the better caption has the higher score.

    Args:
        better: Shape (n_pairs,), scores of the captions that are better.
        worse: Shape (n_pairs,), those of the other captions of the same pairs.

    Returns:
        Share in [0, 1]; a tie is no right answer. ``nan`` where there is no pair.

    Raises:
        ValueError: If the numbers of scores differ.

    Source:
        G-VEval, appendix E; as its released code counts ties (ztangaj/gveval@fee3fd7:
        compute_foil.py).

    >>> pairwise_accuracy([0.5, 0.5, 0.9], [0.1, 0.5, 1.0])
    0.3333333333333333
    """
    if len(better) != len(worse):
        raise ValueError(
            f"pairwise_accuracy: expected as many scores, got {len(better)} and {len(worse)}"
        )
    if not better:
        return nan
    return sum(one > other for one, other in zip(better, worse, strict=True)) / len(better)


_ROUNDING: Final = 1e-9
"""Two numbers that are so much further apart than allowed differ by rounding alone."""


def same_verdict(runs: Sequence[object], *, within: float = 0.0) -> bool | None:
    """Whether a question got the same verdict in every judge run.

    Args:
        runs: Shape (n_runs,): a label or a number of each run; ``None`` is unscored.
        within: Numbers that are at most so far apart are the same, >= 0, in their own unit.

    Returns:
        ``False`` where two runs differ; ``None`` where that is not known: no two do, but a run is
        unscored or there are fewer than two.

    Source:
        VidCapBench, section 3.2 ("consistent across all three trials"). It says nothing of
        numbers, whose rule is ours, or of unscored questions.

    >>> same_verdict(["yes", "yes", "yes"]), same_verdict(["yes", None, "no"])
    (True, False)
    >>> same_verdict(["yes", None, "yes"]) is None, same_verdict([61.0, 64.0], within=5.0)
    (True, True)
    """
    said = [verdict for verdict in runs if verdict is not None]
    numbers = [verdict for verdict in said if isinstance(verdict, int | float)]
    if numbers and len(numbers) == len(said):
        differ = max(numbers) - min(numbers) > within + _ROUNDING
    else:
        differ = any(verdict != said[0] for verdict in said)
    if differ:
        return False
    return True if len(said) == len(runs) > 1 else None


KNOWN_SAME = 1
KNOWN_DIFFERENT = 0
UNKNOWN = -1


def consistent_times(same: NDArray[np.int8]) -> list[int]:
    """The questions whose verdicts are the same in all judge runs for so many captioners.

    Args:
        same: Shape (n_captioners, n_questions), n_captioners >= 1: ``KNOWN_SAME``,
            ``KNOWN_DIFFERENT`` or ``UNKNOWN``.

    Returns:
        Shape (n_captioners + 1,): the questions that are the same for all captioners, for all but
        one, and so on down to none; those that are unknown for a captioner are in no count.

    Source:
        VidCapBench, Table 8 ("Consistent Times", "# Samples").

    >>> consistent_times(np.array([[1, 1, 0, -1], [1, 0, 0, 1]], dtype=np.int8))
    [1, 1, 1]
    """
    known = (same != UNKNOWN).all(axis=0)
    times = (same[:, known] == KNOWN_SAME).sum(axis=0)
    counts: list[int] = np.bincount(times, minlength=len(same) + 1)[::-1].tolist()
    return counts


def unstable_that_pass(flip: float, *, n_runs: int, n_captioners: int) -> float:
    """Chance that a question looks stable though its verdict flips from run to run.

    Args:
        flip: How often one of its captions gets the other of two verdicts, in [0, 1].
        n_runs: Judge runs of each caption, >= 1.
        n_captioners: Captions of its video, each judged for itself, >= 1.

    Returns:
        Chance that every caption gets one verdict in all of its runs, in [0, 1].

    Source:
        The binomial distribution, of the rule of VidCapBench, section 3.2, which asks three times
        about the captions of five captioners.

    >>> round(unstable_that_pass(0.1, n_runs=3, n_captioners=1), 2)
    0.73
    >>> round(unstable_that_pass(0.1, n_runs=3, n_captioners=5), 2)
    0.21
    """
    return float((flip**n_runs + (1 - flip) ** n_runs) ** n_captioners)
