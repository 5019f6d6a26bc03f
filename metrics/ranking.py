"""Rankings from pairwise choices: Bradley-Terry and Elo."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]


_MIDDLE: Final = 1000.0
_POINTS: Final = 400.0 / log(10.0)
"""Points of Elo's scale for a difference of one in the logarithm of the odds."""
_STEPS: Final = 100
_SMALL: Final = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class BradleyTerry:
    """Strengths on Elo's scale, whose mean over captioners is 1,000."""

    values: Floats | None
    """Shape (n_captioners,); ``None`` where there are none."""
    low: Floats | None
    high: Floats | None
    """Ends of the 95 % intervals; ``None`` where there are none."""
    note: str = ""
    """Why not, else empty."""


def bradley_terry(
    matches: Places, scores: Floats, videos: Places, *, n_captioners: int, level: float = 0.95
) -> BradleyTerry:
    """Strengths that make the choices most likely, with intervals over videos.

    The odds that a caption of i is chosen over one of j are ``10 ** ((s_i - s_j) / 400)``.

    Args:
        matches: Shape (n_pairs, 2), n_pairs >= 1: the captioners of each comparison.
        scores: Shape (n_pairs,): 1 where the first won, 0 where the second did; a tie, 0.5, counts
            as half a win of each.
        videos: Shape (n_pairs,): the video of each comparison, a cluster.
        n_captioners: Captioners, 0 to n_captioners - 1, >= 2.
        level: Share of such intervals that cover, in (0, 1).

    Source:
        Bradley and Terry, Rank Analysis of Incomplete Block Designs (1952); maximum likelihood by
        Newton's steps. Intervals by the cluster-robust sandwich of Liang and Zeger (1986) with
        n / (n - 1) videos and a t quantile. Ford (1957) for when there are finite strengths.

    >>> wins = np.array([1.0, 1.0, 1.0, 0.0])
    >>> found = bradley_terry(np.array([[0, 1]] * 4), wins, np.arange(4), n_captioners=2)
    >>> [round(float(value), 1) for value in found.values]  # 3 to 1: 190.8 points apart
    [1095.4, 904.6]
    """
    note = _why_none(matches, scores, n_captioners)
    if note:
        return BradleyTerry(values=None, low=None, high=None, note=note)
    rows = np.arange(len(matches))
    signs = np.zeros((len(matches), n_captioners))
    np.add.at(signs, (rows, matches[:, 0]), 1.0)
    np.add.at(signs, (rows, matches[:, 1]), -1.0)
    strengths = np.zeros(n_captioners)
    # Strengths are known up to a constant: the pseudo-inverse keeps their sum at 0.
    for _ in range(_STEPS):
        expected, inverse = _newton(signs, strengths)
        step = inverse @ (signs.T @ (scores - expected))
        strengths = strengths + step
        if np.abs(step).max() < _SMALL:
            break
    values: Floats = _MIDDLE + _POINTS * strengths
    names, clusters = np.unique(videos, return_inverse=True)
    if len(names) < 2:
        note = "no interval: fewer than 2 videos"
        return BradleyTerry(values=values, low=None, high=None, note=note)
    expected, inverse = _newton(signs, strengths)
    of_videos = np.zeros((len(names), n_captioners))
    np.add.at(of_videos, clusters, signs * (scores - expected)[:, None])
    influences = of_videos @ inverse
    if np.abs(influences).max() < _SMALL:
        note = "no interval: all videos say the same"
        return BradleyTerry(values=values, low=None, high=None, note=note)
    from scipy.special import stdtrit

    variances = (influences**2).sum(axis=0) * len(names) / (len(names) - 1)
    reach = float(stdtrit(len(names) - 1, (1 + level) / 2)) * _POINTS * np.sqrt(variances)
    return BradleyTerry(values=values, low=values - reach, high=values + reach)


def _newton(signs: Floats, strengths: Floats) -> tuple[Floats, Floats]:
    """Expected scores of the first, and the inverse of the information."""
    expected: Floats = 1 / (1 + np.exp(-(signs @ strengths)))
    information = signs.T @ (signs * (expected * (1 - expected))[:, None])
    inverse: Floats = np.linalg.pinv(information, hermitian=True).astype(np.float64)
    return expected, inverse


def _why_none(matches: Places, scores: Floats, n_captioners: int) -> str:
    """Why there are no finite strengths, empty where there are."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    first, second = matches.T
    won, lost = scores > 0, scores < 1
    winners = np.concatenate([first[won], second[lost]])
    losers = np.concatenate([second[won], first[lost]])
    shape = (n_captioners, n_captioners)
    graph = coo_array((np.ones(len(winners)), (winners, losers)), shape=shape)
    n_parts, _ = connected_components(graph, connection="strong")
    if n_parts == 1:
        return ""
    return "no strengths: a captioner, or several together, won or lost every choice against others"


@dataclass(frozen=True, slots=True, kw_only=True)
class EloParameters:
    """Parameters of AuroraCap's Table O14, which are the defaults."""

    initial_mean: float = 1000.0
    initial_deviation: float = 300.0
    base: float = 10.0
    scaling_factor: float = 400.0
    k_factor: float = 32.0
    minimum: float = 700.0
    n_matches: int = 2778
    """Matches of one simulation."""


PAPER: Final = EloParameters()


@dataclass(frozen=True, slots=True, kw_only=True)
class Elo:
    """Ratings with what they may be on other videos like these."""

    values: Floats
    """Shape (n_captioners,): mean over simulations."""
    low: Floats | None
    high: Floats | None
    """Ends of the 95 % intervals; ``None`` where there are fewer than 2 videos."""


def play(
    matches: Places,
    scores: Floats,
    initial: Floats,
    *,
    orders: Places,
    parameters: EloParameters = PAPER,
) -> Floats:
    """Ratings after matches in an order, in several simulations at once.

    Args:
        matches: Shape (n_pairs, 2): the captioners of each recorded comparison.
        scores: Shape (n_pairs,): 1 where the first won, 0.5 for a tie, 0 where the second did.
        initial: Shape (n_simulations, n_captioners): ratings before.
        orders: Shape (n_simulations, n_matches): which comparison each match is.
        parameters: Those of Elo; ``n_matches`` and the initial ones are not read here.

    Returns:
        Shape (n_simulations, n_captioners), at least ``minimum``.

    Source:
        Elo, The Rating of Chessplayers (1978); AuroraCap, appendix O, Table O14.

    >>> start = np.array([[1000.0, 1000.0]])
    >>> play(np.array([[0, 1]]), np.array([1.0]), start, orders=np.array([[0]])).tolist()
    [[1016.0, 984.0]]
    """
    ratings = np.maximum(initial.astype(np.float64), parameters.minimum)
    rows = np.arange(len(ratings))
    for places in orders.T:
        first, second = matches[places, 0], matches[places, 1]
        ahead = ratings[rows, second] - ratings[rows, first]
        expected = 1 / (1 + parameters.base ** (ahead / parameters.scaling_factor))
        gain = parameters.k_factor * (scores[places] - expected)
        ratings[rows, first] = np.maximum(ratings[rows, first] + gain, parameters.minimum)
        ratings[rows, second] = np.maximum(ratings[rows, second] - gain, parameters.minimum)
    return ratings


def elo(
    matches: Places,
    scores: Floats,
    videos: Places,
    *,
    n_captioners: int,
    rng: np.random.Generator,
    parameters: EloParameters = PAPER,
    n_simulations: int = 500,
    n_resamples: int = 500,
) -> Elo:
    """Elo of captioners.

    The paper simulates 2,778 matches from initial ratings of mean 1,000 and deviation 300, and
    does not say what it plays or how often. Here every match is a recorded comparison drawn at
    random, initial ratings are drawn from the normal distribution, and the rating is the mean over
    simulations, since a single one is uncertain by tens of points from the order of its matches.
    The interval is that of the mean: in each resample, videos are drawn with replacement, all
    comparisons of a video together; what is left of the order's part is taken off its variance.

    Args:
        matches: Shape (n_pairs, 2), n_pairs >= 1: the captioners of each comparison.
        scores: Shape (n_pairs,): 1 where the first won, 0.5 for a tie, 0 where the second did.
        videos: Shape (n_pairs,): the video of each comparison.
        n_captioners: Captioners, 0 to n_captioners - 1.
        rng: Source of the draws.
        parameters: Table O14's by default.
        n_simulations: Simulations whose mean is the rating.
        n_resamples: Resamples of videos, of four simulations each.
    """

    def simulate(drawn: list[Places], n_each: int) -> Floats:
        orders = np.concatenate(
            [rng.choice(places, size=(n_each, parameters.n_matches)) for places in drawn]
        )
        mean, deviation = parameters.initial_mean, parameters.initial_deviation
        initial = rng.normal(mean, deviation, size=(len(orders), n_captioners))
        ratings = play(matches, scores, initial, orders=orders, parameters=parameters)
        return ratings.reshape(len(drawn), n_each, n_captioners)

    values = simulate([np.arange(len(matches))], n_simulations)[0].mean(axis=0)
    of_videos = [np.flatnonzero(videos == video) for video in np.unique(videos)]
    n_videos = len(of_videos)
    if n_videos < 2:
        return Elo(values=values, low=None, high=None)
    drawn = [
        np.concatenate([of_videos[place] for place in rng.integers(n_videos, size=n_videos)])
        for _ in range(n_resamples)
    ]
    ratings = simulate(drawn, 4)
    order = ratings.var(axis=1, ddof=1).mean(axis=0) / 4
    variance = np.maximum(ratings.mean(axis=1).var(axis=0, ddof=1) - order, 0.0)
    from scipy.special import stdtrit

    reach = float(stdtrit(n_videos - 1, 0.975)) * np.sqrt(variance * n_videos / (n_videos - 1))
    low: Floats = np.maximum(values - reach, parameters.minimum)
    return Elo(values=values, low=low, high=values + reach)
