"""Keeping clips by a noisy score: its reliability, the best clips, and how many are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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


def score_reliability(first: Floats, second: Floats, *, first_share: float = 0.5) -> Interval:
    """Return the share of the variance of clips' scores that other questions would reproduce.

    Each clip's questions (or judge runs) are split in two, whatever the verdicts, and each half
    gives the clip a score; the correlation of the halves tells the reliability of the whole. It is
    too low if a clip's questions are one of each kind, and clips differ in the kind they are good
    at.

    Args:
        first: Shape (n_clips,), each clip's score by its first half, in any unit; ``nan`` if it has
            none. Clips that lack a half do not count.
        second: The same by the second half.
        first_share: Share of a clip's questions in its first half, in (0, 1), such as 1/3 for one
            of three judge runs.

    Returns:
        Reliability in [0, 1] with its 95% interval over clips; ``nan`` with fewer than 10 clips, or
        if a half is the same for all of them; without ends if the halves are equal.

    Source:
        Spearman (1910) and Brown (1910), British Journal of Psychology 3: 2 r / (1 + r). Halves of
        different sizes: Horst, Educational and Psychological Measurement 11 (1951). The ends are
        those of :func:`pearson_interval`, transformed; in simulations they cover 91 to 98% from
        30 clips on.

    >>> first = np.array([0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1.0])
    >>> second = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1.0])
    >>> found = score_reliability(first, second)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.769, 0.0, 0.982)
    """
    has_both = ~(np.isnan(first) | np.isnan(second))
    n_clips = int(has_both.sum())
    if n_clips < FEWEST_CLIPS:
        note = f"no value: fewer than {FEWEST_CLIPS} clips have a score by both halves"
        return Interval(value=nan, n_videos=n_clips, note=note)
    halves = pearson_interval(first[has_both], second[has_both], np.arange(n_clips))
    value = _of_whole(halves.value, first_share)
    error = halves.standard_error
    if halves.low is None or halves.high is None or error is None:
        return replace(halves, value=value)
    around = [_of_whole(halves.value + way * error, first_share) for way in (-1, 1)]
    return replace(
        halves,
        value=value,
        low=_of_whole(halves.low, first_share),
        high=_of_whole(halves.high, first_share),
        standard_error=(around[1] - around[0]) / 2,
    )


def _of_whole(correlation: float, first_share: float) -> float:
    """Return the reliability of a whole from the correlation of its parts, in [0, 1] or ``nan``."""
    if not 0 < correlation < 1:
        return correlation if isnan(correlation) else float(correlation >= 1)
    # Horst's formula, multiplied by what keeps it exact near a correlation of 1.
    rest = 4 * first_share * (1 - first_share) * (1 - correlation) * (1 + correlation)
    root = sqrt(correlation**2 + rest)
    return min(1.0, 2 * correlation / (root + correlation))


_MODEL_ERRORS: Final = ((0.8, 0.02), (0.5, 0.07), (0.0, 0.25))
"""Lower bounds of the kept share, and by how much the stated error may be off with any number of
clips, by simulation."""
_NORMAL: Final = 1.96
_N_TRUE: Final = 400
"""Grid points of true scores."""
_MAX_OBSERVED: Final = 1000
"""Groups of observed scores, if there are more scores."""
_N_STEPS: Final = 10
"""EM steps; more would take deviations from the model for differences between clips."""
_EDGE: Final = 1e-9
"""Distance of true scores from 0 and 1."""
_SAME: Final = 1e-5
"""Standard deviation below which scores are the same."""
_CHANCE: Final = 1e-5
"""Reliability below which scores carry no information; 1 minus it is certainty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepError:
    """Share of wrong clips in a list of the best ones."""

    share: float = nan
    """Expected share of the kept clips that are not among as many with the highest true scores, in
    [0, 1]; ``nan`` if unknown."""
    low: float = nan
    high: float = nan
    """Ends of its 95% interval; ``nan`` if unknown."""
    n_kept: int
    n_clips: int
    """Clips with a score."""

    @property
    def dropped_share(self) -> float:
        """Expected share of the dropped clips that are among the truly best; ``nan`` if unknown."""
        n_dropped = self.n_clips - self.n_kept
        return self.share * self.n_kept / n_dropped if n_dropped else nan


def keep_error(scores: Floats, reliability: Interval, *, keep: float) -> KeepError:
    """Return the share of the kept clips that are not among the best by their true scores.

    A clip's true score is what endlessly many questions (or judge runs) like its own would give.
    The spread of true scores follows from that of the scores and their reliability. Given a true
    score, the observed one is modelled as a share of as many independent questions as gives the
    reliability. So each observed score tells how likely the true one is below the cut.

    Args:
        scores: Shape (n_clips,), each in [0, 1]; ``nan`` is none, and such clips are not kept.
        reliability: See :func:`score_reliability`.
        keep: Share of the clips with a score that is kept, in (0, 1].

    Returns:
        The expected share with its interval, from that of the reliability, the chance error of
        these clips and :func:`model_error`. It is too high if many clips have the same true score
        or each of a clip's questions is about something else, and may be far too low below a
        ``keep`` of 0.5 for ratings near the end of their scale.

    Source:
        Our own. The prior is a beta distribution by moments (Skellam, 1948; Keats and Lord, 1962),
        reweighted by a few EM steps (Laird, 1978). In simulations it is within 2 percentage points
        from a ``keep`` of 0.8 on, and within 7 with 0.5.

    Ten clips of each number right of 5 questions, half of whose spread is noise:

    >>> half = Interval(value=0.5, low=0.4, high=0.6, standard_error=0.05, n_videos=60)
    >>> found = keep_error(np.repeat(np.arange(6) / 5, 10), half, keep=0.8)
    >>> found.n_kept, round(found.share, 3), round(found.low, 3), round(found.high, 3)
    (48, 0.114, 0.021, 0.206)
    """
    known = scores[~np.isnan(scores)]
    n_clips = len(known)
    n_kept = round(keep * n_clips)
    found = KeepError(n_kept=n_kept, n_clips=n_clips)
    if n_kept and n_kept == n_clips:
        return replace(found, share=0.0, low=0.0, high=0.0)
    if not n_kept or known.std() <= _SAME or isnan(reliability.value):
        return found
    ends = [reliability.value, reliability.low, reliability.high]
    shares = [_wrong_share(known, n_kept, end) for end in ends if end is not None]
    share, lowest, highest = shares[0], min(shares), max(shares)
    # As if the kept clips were drawn one by one, but never less than half a clip.
    chance = _NORMAL * sqrt(max(share * (1 - share), 1 / (4 * n_kept)) / n_kept)
    below = hypot(share - lowest, chance, model_error(keep))
    above = hypot(highest - share, chance, model_error(keep))
    return replace(found, share=share, low=max(0.0, share - below), high=min(1.0, share + above))


def model_error(keep: float) -> float:
    """Return by how much a stated share may be off with any number of clips.

    It is a difference of shares, for a share ``keep`` in (0, 1] of kept clips, by simulation.

    >>> model_error(0.8), model_error(0.5)
    (0.02, 0.07)
    """
    return next(error for least, error in _MODEL_ERRORS if keep >= least)


def _wrong_share(scores: Floats, n_kept: int, reliability: float) -> float:
    """Return the expected share of kept clips whose true score is below the cut of true scores."""
    n_clips = len(scores)
    dropped = 1 - n_kept / n_clips
    if reliability <= _CHANCE:
        return dropped
    if reliability >= 1 - _CHANCE:
        return 0.0
    values, counts = _observed(scores)
    kept = np.clip(n_kept - (n_clips - np.cumsum(counts)), 0, counts) / n_clips
    chances = _true_given_observed(scores, values, counts / n_clips, reliability)
    of_true = counts / n_clips @ chances
    rests = dropped - (np.cumsum(of_true) - of_true)
    below = np.clip(rests / np.maximum(of_true, np.finfo(np.float64).tiny), 0, 1)
    return float(kept @ (chances @ below)) / float(kept.sum())


def _observed(scores: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return the values of scores, in ascending order, and the number of clips with each."""
    values, counts = np.unique(scores, return_counts=True)
    if len(values) <= _MAX_OBSERVED:
        return values, counts
    groups = (np.cumsum(counts) - counts) * _MAX_OBSERVED // len(scores)
    groups = np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(groups, counts).astype(np.intp)
    return np.bincount(groups, values * counts) / sizes, sizes


def _true_given_observed(
    scores: Floats, values: Floats, shares: Floats, reliability: float
) -> Floats:
    """Return the chance of each true score, in ascending order, shape (n_values, n_true)."""
    from scipy.special import betaincinv

    mean, variance = float(scores.mean()), float(scores.var())
    prior = mean * (1 - mean) / (reliability * variance) - 1
    n_questions = prior * reliability / (1 - reliability)
    quantiles = (np.arange(_N_TRUE) + 0.5) / _N_TRUE
    true = np.clip(betaincinv(prior * mean, prior * (1 - mean), quantiles), _EDGE, 1 - _EDGE)
    right = values[:, None]
    logs = n_questions * (right * np.log(true) + (1 - right) * np.log1p(-true))
    likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(_N_TRUE, 1 / _N_TRUE)
    for _ in range(_N_STEPS):
        weights *= likelihoods.T @ (shares / (likelihoods @ weights))
    chances: Floats = likelihoods * weights / (likelihoods @ weights)[:, None]
    return chances


_DECIMALS: Final = 9
"""Scores that are the same to so many decimals are tied: the rest is rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptClips:
    """The kept clips."""

    mask: NDArray[np.bool_]
    """Shape (n_clips,): True for kept clips."""
    n_tied_dropped: int
    """Dropped clips with the lowest score that is kept."""


def kept_clips(clip_ids: Sequence[str], scores: Floats, *, keep: float) -> KeptClips:
    """Return the best clips by their scores, ``round(keep * n)`` of the n that have one.

    Of clips tied at the cut, those with the smallest hash of their id are kept: the same ones
    whatever order the clips come in, and a choice that depends on nothing else.

    Args:
        clip_ids: Shape (n_clips,); read only for scores tied at the cut.
        scores: Shape (n_clips,), higher is better; ``nan`` is none, and such clips are never kept.
        keep: Share of the clips with a score, in (0, 1].

    >>> scores = np.array([0.8, 1.0, 0.6, 0.8, np.nan, 0.8])
    >>> found = kept_clips(["a", "b", "c", "d", "e", "f"], scores, keep=0.6)
    >>> found.mask.tolist(), found.n_tied_dropped
    ([True, True, False, False, False, True], 1)
    """
    rounded = np.round(scores, _DECIMALS)
    known = np.sort(rounded[~np.isnan(rounded)])
    n_kept = round(keep * len(known))
    if not n_kept:
        return KeptClips(mask=np.zeros(len(scores), dtype=np.bool_), n_tied_dropped=0)
    cutoff = known[-n_kept]
    mask = rounded > cutoff
    tied = np.flatnonzero(rounded == cutoff)
    n_tied_kept = n_kept - int(mask.sum())
    if n_tied_kept < len(tied):
        tied = np.array(sorted(tied.tolist(), key=lambda index: _hash(clip_ids[index])))
    mask[tied[:n_tied_kept]] = True
    return KeptClips(mask=mask, n_tied_dropped=len(tied) - n_tied_kept)


def _hash(clip_id: str) -> bytes:
    return blake2b(clip_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
