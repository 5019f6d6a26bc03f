"""Rankings from pairwise choices: Bradley-Terry and Elo."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import Final

import numpy as np

from lmms_eval_captions.metrics.intervals import sums_of_clusters
from lmms_eval_captions.metrics.parts import Floats, Indices, t_quantile

_POINTS: Final = 400.0 / log(10.0)
"""Points of Elo's scale for a difference of 1 in the log-odds."""
_N_STEPS: Final = 100
_SMALL: Final = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class BradleyTerry:
    """Strengths on Elo's scale, with a mean of 1,000 over captioners, and their 95% intervals."""

    values: Floats | None = None
    """Shape (n_captioners,); ``None`` if the strengths are not finite."""
    low: Floats | None = None
    high: Floats | None = None
    note: str = ""
    """Why there are no strengths or intervals, else empty."""


def bradley_terry(
    matches: Indices, scores: Floats, videos: Indices, *, n_captioners: int
) -> BradleyTerry:
    """Return the strengths that make the choices most likely, with 95% intervals over videos.

    The odds that a caption of i is chosen over one of j are ``10 ** ((s_i - s_j) / 400)``.

    Args:
        matches: Shape (n_pairs, 2), n_pairs >= 1: the captioners of each comparison, from 0.
        scores: Shape (n_pairs,): 1 if the first won, 0 if the second did, 0.5 for a tie, which
            counts as half a win of each.
        videos: Shape (n_pairs,): the video of each comparison, which is a cluster.
        n_captioners: Captioners, >= 2.

    Source:
        Bradley and Terry, Rank Analysis of Incomplete Block Designs (1952), by Newton's method;
        cluster-robust sandwich of Liang and Zeger (1986). Ford (1957) on when strengths are finite.

    >>> wins = np.array([1.0, 1.0, 1.0, 0.0])
    >>> found = bradley_terry(np.array([[0, 1]] * 4), wins, np.arange(4), n_captioners=2)
    >>> [round(float(value), 1) for value in found.values]  # 3 to 1: 190.8 points apart
    [1095.4, 904.6]
    """
    from scipy.special import expit

    if not _is_connected(matches, scores, n_captioners):
        why = "a captioner, or several together, won or lost every choice against others"
        return BradleyTerry(note=f"no strengths: {why}")
    signs = np.eye(n_captioners)[matches[:, 0]] - np.eye(n_captioners)[matches[:, 1]]

    def newton(strengths: Floats) -> tuple[Floats, Floats]:
        """Return what was not expected of the first, and the inverse of the information."""
        expected = expit(signs @ strengths)
        information = signs.T @ (signs * (expected * (1 - expected))[:, None])
        # Strengths are known up to a constant: the pseudo-inverse keeps their sum at 0. Its default
        # bound is so low that a rounded 0 among the eigenvalues can pass it.
        return scores - expected, np.linalg.pinv(information, rcond=1e-10, hermitian=True)

    strengths = np.zeros(n_captioners)
    for _ in range(_N_STEPS):
        surprise, inverse = newton(strengths)
        step = inverse @ (signs.T @ surprise)
        strengths = strengths + step
        if np.abs(step).max() < _SMALL:
            break
    values = 1000.0 + _POINTS * strengths
    found = BradleyTerry(values=values)
    clusters = np.unique(videos, return_inverse=True)[1]
    n_videos = int(clusters.max()) + 1
    if n_videos < 2:
        return replace(found, note="no interval: fewer than 2 videos")
    surprise, inverse = newton(strengths)
    influences = sums_of_clusters(signs * surprise[:, None], clusters) @ inverse
    if np.abs(influences).max() < _SMALL:
        return replace(found, note="no interval: all videos say the same")
    variances = (influences**2).sum(axis=0) * n_videos / (n_videos - 1)
    reach = t_quantile(n_videos - 1) * _POINTS * np.sqrt(variances)
    return replace(found, low=values - reach, high=values + reach)


def _is_connected(matches: Indices, scores: Floats, n_captioners: int) -> bool:
    """Return whether every captioner has, over others, won against every other one."""
    from scipy.sparse.csgraph import connected_components

    wins = np.concatenate([matches[scores > 0], matches[scores < 1][:, ::-1]])
    graph = np.zeros((n_captioners, n_captioners))
    graph[tuple(wins.T)] = 1
    return bool(connected_components(graph, connection="strong")[0] == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class EloParameters:
    """Parameters of AuroraCap's Table O14."""

    initial_mean: float = 1000.0
    initial_deviation: float = 300.0
    base: float = 10.0
    scaling_factor: float = 400.0
    k_factor: float = 32.0
    minimum: float = 700.0
    n_matches: int = 2778
    """Matches of one simulation."""


PAPER: Final = EloParameters()
_N_SIMULATIONS: Final = 500
_N_RESAMPLES: Final = 500
_N_PER_RESAMPLE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Elo:
    """Ratings, shape (n_captioners,), with 95% intervals, ``None`` with fewer than 2 videos."""

    values: Floats
    low: Floats | None = None
    high: Floats | None = None


def play(matches: Indices, scores: Floats, initial: Floats, *, orders: Indices) -> Floats:
    """Return the ratings after matches, in several simulations at once, see :func:`elo`.

    ``initial`` are the ratings before, shape (n_simulations, n_captioners); ``orders`` has shape
    (n_simulations, n_matches): the comparison of each match.

    >>> start = np.array([[1000.0, 1000.0]])
    >>> play(np.array([[0, 1]]), np.array([1.0]), start, orders=np.array([[0]])).tolist()
    [[1016.0, 984.0]]
    """
    ratings = np.maximum(initial, PAPER.minimum)
    rows = np.arange(len(ratings))
    for indices in orders.T:
        first, second = matches[indices, 0], matches[indices, 1]
        ahead = ratings[rows, second] - ratings[rows, first]
        expected = 1 / (1 + PAPER.base ** (ahead / PAPER.scaling_factor))
        gain = PAPER.k_factor * (scores[indices] - expected)
        ratings[rows, first] = np.maximum(ratings[rows, first] + gain, PAPER.minimum)
        ratings[rows, second] = np.maximum(ratings[rows, second] - gain, PAPER.minimum)
    return ratings


def elo(
    matches: Indices,
    scores: Floats,
    videos: Indices,
    *,
    n_captioners: int,
    rng: np.random.Generator,
) -> Elo:
    """Return the Elo ratings of captioners, with intervals over videos.

    The arguments are those of :func:`bradley_terry`, and the source of draws. The paper does not
    say what its 2,778 matches are, or how often they are simulated. Here every match is a recorded
    comparison drawn at random, and the rating is the mean over simulations, as a single one is
    uncertain by tens of points. For the interval, videos are drawn with replacement, and the
    variance due to the order of matches is subtracted.

    Source:
        Elo, The Rating of Chessplayers (1978); AuroraCap, appendix O, Table O14.
    """

    def simulate(drawn: list[Indices], n_each: int) -> Floats:
        orders = np.concatenate(
            [rng.choice(indices, size=(n_each, PAPER.n_matches)) for indices in drawn]
        )
        shape = (len(orders), n_captioners)
        initial = rng.normal(PAPER.initial_mean, PAPER.initial_deviation, size=shape)
        ratings = play(matches, scores, initial, orders=orders)
        return ratings.reshape(len(drawn), n_each, n_captioners)

    values = simulate([np.arange(len(matches))], _N_SIMULATIONS)[0].mean(axis=0)
    of_videos = [np.flatnonzero(videos == video) for video in np.unique(videos)]
    n_videos = len(of_videos)
    if n_videos < 2:
        return Elo(values=values)
    drawn = [
        np.concatenate([of_videos[index] for index in rng.integers(n_videos, size=n_videos)])
        for _ in range(_N_RESAMPLES)
    ]
    ratings = simulate(drawn, _N_PER_RESAMPLE)
    of_order = ratings.var(axis=1, ddof=1).mean(axis=0) / _N_PER_RESAMPLE
    variance = np.maximum(ratings.mean(axis=1).var(axis=0, ddof=1) - of_order, 0.0)
    reach = t_quantile(n_videos - 1) * np.sqrt(variance * n_videos / (n_videos - 1))
    return Elo(values=values, low=np.maximum(values - reach, PAPER.minimum), high=values + reach)
