"""Keeping clips by a noisy score: its reliability, the best clips, and how many are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from math import hypot, isnan, nan, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.metrics.correlation import pearson_interval
from lmms_eval_captions.metrics.intervals import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FEWEST_CLIPS: Final = 10
"""Clips with both halves below which there is no reliability."""
_MODEL_ERRORS: Final = ((0.8, 0.02), (0.5, 0.07), (0.0, 0.25))
"""Lower bounds of the kept share, and by how much the stated error may be off with any number of
clips, by simulation."""
_NORMAL: Final = 1.96
_TRUE: Final = (np.arange(400) + 0.5) / 400
"""Quantiles at which true scores are looked at."""
_MAX_OBSERVED: Final = 1000
"""Groups of observed scores, if there are more scores."""
_N_STEPS: Final = 10
"""EM steps; more would take deviations from the model for differences between clips."""
_EDGE: Final = 1e-9
_SAME: Final = 1e-5
"""Standard deviation of equal scores; reliability without information, and 1 minus certainty."""
_DECIMALS: Final = 9
"""Scores that are equal to so many decimals are tied."""


def score_reliability(first: Floats, second: Floats, *, first_share: float = 0.5) -> Interval:
    """Return the share of the variance of clips' scores that other questions would reproduce.

    Args:
        first: Shape (n_clips,), scores by the first half of a clip's questions; ``nan`` if none.
        second: The same by the second half.
        first_share: Share of a clip's questions in its first half, in (0, 1).

    Returns:
        Reliability in [0, 1] with its 95% interval over clips; ``nan`` with fewer than 10 clips, or
        if a half is the same for all of them; without ends if the halves are equal.

    Source:
        Spearman and Brown (1910), British Journal of Psychology 3; halves of different sizes: Horst
        (1951), Educational and Psychological Measurement 11. In simulations the ends cover 91 to
        98% from 30 clips on.

    >>> first = np.array([0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1.0])
    >>> second = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1.0])
    >>> found = score_reliability(first, second)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.769, 0.0, 0.982)
    """

    def whole(correlation: float) -> float:
        if not 0 < correlation < 1:
            return correlation if isnan(correlation) else float(correlation >= 1)
        # Horst's formula, multiplied by what keeps it exact near a correlation of 1.
        rest = 4 * first_share * (1 - first_share) * (1 - correlation) * (1 + correlation)
        return min(1.0, 2 * correlation / (sqrt(correlation**2 + rest) + correlation))

    has_both = ~(np.isnan(first) | np.isnan(second))
    n_clips = int(has_both.sum())
    if n_clips < FEWEST_CLIPS:
        note = f"no value: fewer than {FEWEST_CLIPS} clips have a score by both halves"
        return Interval(value=nan, n_videos=n_clips, note=note)
    halves = pearson_interval(first[has_both], second[has_both], np.arange(n_clips))
    error = halves.standard_error
    if halves.low is None or halves.high is None or error is None:
        return replace(halves, value=whole(halves.value))
    return replace(
        halves,
        value=whole(halves.value),
        low=whole(halves.low),
        high=whole(halves.high),
        standard_error=(whole(halves.value + error) - whole(halves.value - error)) / 2,
    )


def keep_error(
    scores: Floats, reliability: Interval, *, keep: float
) -> tuple[float, float, float] | None:
    """Return the share of the kept clips that are not among the best by their true scores.

    A clip's true score is what endlessly many questions like its own would give. Given a true
    score, the observed one is modelled as a share of as many independent questions as gives the
    reliability; so each observed score tells how likely the true one is below the cut.

    Args:
        scores: Shape (n_clips,), each in [0, 1]; ``nan`` is none, and such clips are not kept.
        reliability: See :func:`score_reliability`.
        keep: Share of the clips with a score that is kept, in (0, 1].

    Returns:
        Expected share in [0, 1] with the ends of its 95% interval; ``None`` if unknown.

    >>> half = Interval(value=0.5, low=0.4, high=0.6, standard_error=0.05, n_videos=60)
    >>> [round(x, 3) for x in keep_error(np.repeat(np.arange(6) / 5, 10), half, keep=0.8)]
    [0.114, 0.021, 0.206]
    """
    known = scores[~np.isnan(scores)]
    n_clips, n_kept = len(known), round(keep * len(known))
    if n_kept and n_kept == n_clips:
        return 0.0, 0.0, 0.0
    if not n_kept or known.std() <= _SAME or isnan(reliability.value):
        return None
    ends = (reliability.value, reliability.low, reliability.high)
    share, *others = [_wrong_share(known, n_kept, end) for end in ends if end is not None]
    # As if the kept clips were drawn one by one, but never less than half a clip.
    chance = _NORMAL * sqrt(max(share * (1 - share), 1 / (4 * n_kept)) / n_kept)
    below = hypot(share - min(share, *others, share), chance, model_error(keep))
    above = hypot(max(share, *others, share) - share, chance, model_error(keep))
    return share, max(0.0, share - below), min(1.0, share + above)


def model_error(keep: float) -> float:
    """Return by how much a stated share may be off with any number of clips, by simulation.

    >>> model_error(0.8), model_error(0.5)
    (0.02, 0.07)
    """
    return next(error for least, error in _MODEL_ERRORS if keep >= least)


def _wrong_share(scores: Floats, n_kept: int, reliability: float) -> float:
    """Return the expected share of kept clips whose true score is below the cut of true scores."""
    from scipy.special import betaincinv

    n_clips, dropped = len(scores), 1 - n_kept / len(scores)
    if reliability <= _SAME:
        return dropped
    if reliability >= 1 - _SAME:
        return 0.0
    values, counts = np.unique(scores, return_counts=True)
    if len(values) > _MAX_OBSERVED:
        groups = (np.cumsum(counts) - counts) * _MAX_OBSERVED // n_clips
        groups = np.unique(groups, return_inverse=True)[1]
        sums, counts = np.bincount(groups, values * counts), np.bincount(groups, counts)
        values = sums / counts
    mean, variance = float(scores.mean()), float(scores.var())
    prior = mean * (1 - mean) / (reliability * variance) - 1
    n_questions = prior * reliability / (1 - reliability)
    true = betaincinv(prior * mean, prior * (1 - mean), _TRUE).clip(_EDGE, 1 - _EDGE)
    right = values[:, None]
    logs = n_questions * (right * np.log(true) + (1 - right) * np.log1p(-true))
    likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(len(_TRUE), 1 / len(_TRUE))
    for _ in range(_N_STEPS):
        weights *= likelihoods.T @ (counts / n_clips / (likelihoods @ weights))
    chances = likelihoods * weights / (likelihoods @ weights)[:, None]
    of_true = counts / n_clips @ chances
    rests = dropped - (np.cumsum(of_true) - of_true)
    below = np.clip(rests / np.maximum(of_true, np.finfo(np.float64).tiny), 0, 1)
    kept = np.clip(n_kept - (n_clips - np.cumsum(counts)), 0, counts) / n_clips
    return float(kept @ (chances @ below)) / float(kept.sum())


def kept_clips(
    clip_ids: Sequence[str], scores: Floats, *, keep: float
) -> tuple[NDArray[np.bool_], int]:
    """Return which clips are the best ``round(keep * n)`` of the n that have a score, not ``nan``.

    Of clips tied at the cut, those with the smallest hash of their id are kept, in whatever order
    the clips come; the second value is the number of the others.

    >>> scores = np.array([0.8, 1.0, 0.6, 0.8, np.nan, 0.8])
    >>> mask, n_tied_dropped = kept_clips(["a", "b", "c", "d", "e", "f"], scores, keep=0.6)
    >>> mask.tolist(), n_tied_dropped
    ([True, True, False, False, False, True], 1)
    """
    rounded = np.round(scores, _DECIMALS)
    known = np.sort(rounded[~np.isnan(rounded)])
    n_kept = round(keep * len(known))
    if not n_kept:
        return np.zeros(len(scores), dtype=np.bool_), 0
    mask = rounded > known[-n_kept]
    tied = np.flatnonzero(rounded == known[-n_kept]).tolist()
    n_tied_kept = n_kept - int(mask.sum())
    if n_tied_kept < len(tied):
        names = {index: str(clip_ids[index]).encode("utf-8", "surrogatepass") for index in tied}
        tied.sort(key=lambda index: blake2b(names[index], digest_size=8).digest())
    mask[tied[:n_tied_kept]] = True
    return mask, len(tied) - n_tied_kept
