"""Elo of captioners, from people's choices between two captions of a video."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]


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
