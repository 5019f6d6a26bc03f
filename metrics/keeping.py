"""Keeping clips by a noisy score: reliability, and the error of what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import hypot, isnan, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from lmms_eval_captions.metrics.correlation import pearson_interval
from lmms_eval_captions.metrics.intervals import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


FEWEST_CLIPS: Final = 10
"""Clips with both halves below which nothing is said."""


def score_reliability(first: Floats, second: Floats, *, first_share: float = 0.5) -> Interval:
    """The share of the variance of clips' scores that other questions would find again.

    Each clip's questions (or judge runs) are split in two, without a look at what was said of them,
    and each half gives the clip a score. How the halves correlate over clips tells the reliability
    of a half, from which that of the whole follows. It is the squared correlation of the score with
    the one that endlessly many such questions would give. Where a clip's questions are one of each
    kind, and clips differ in which kind they are good at, the halves differ by more than the wholes
    would: then it is too low.

    Args:
        first: Shape (n_clips,), each clip's score by its first half, in any unit; ``nan`` where the
            half has none. Clips that lack a half do not count.
        second: The same by the second half.
        first_share: Share of a clip's questions that are in its first half, in (0, 1), such as 1/3
            where one of three judge runs is.

    Returns:
        Reliability in [0, 1] with its 95 % interval over clips; halves that correlate below 0 give
        0. ``nan`` with fewer than 10 clips, or where a half is the same for all of them; without
        ends where the halves are the same clip by clip.

    Raises:
        ValueError: If the halves are not of the same clips, or ``first_share`` is no such share.

    Source:
        Spearman, Correlation calculated from faulty data (1910), and Brown, Some experimental
        results in the correlation of mental abilities (1910), British Journal of Psychology 3: 2 r
        / (1 + r) with halves of one size. Of other sizes: Horst, Estimating total test reliability
        from parts of unequal length, Educational and Psychological Measurement 11 (1951). The ends
        are those of :func:`pearson_interval`, stepped up: from 30 clips on they cover 91 to 98 %
        (``benchmarks/keep_error.py``) where Fisher's own cover 87 to 95 %, as scores of few
        questions are far from normal.

    >>> first = np.array([0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1.0])
    >>> second = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1.0])
    >>> found = score_reliability(first, second)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.769, 0.0, 0.982)
    """
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(
            "score_reliability: expected two halves of shape (n_clips,), got "
            f"{first.shape} and {second.shape}"
        )
    if not 0 < first_share < 1:
        raise ValueError(f"score_reliability: expected 0 < first_share < 1, got {first_share!r}")
    has_both = ~(np.isnan(first) | np.isnan(second))
    n_clips = int(has_both.sum())
    if n_clips < FEWEST_CLIPS:
        note = f"no value: fewer than {FEWEST_CLIPS} clips have a score by both halves"
        return Interval(
            value=float("nan"), low=None, high=None, standard_error=None, n_videos=n_clips,
            method="none", note=note,
        )  # fmt: skip
    of_halves = pearson_interval(first[has_both], second[has_both], np.arange(n_clips))
    return _stepped_up(of_halves, first_share)


def _stepped_up(halves: Interval, first_share: float) -> Interval:
    """From the correlation of the halves to the reliability of the whole."""
    value = _of_whole(halves.value, first_share)
    error = halves.standard_error
    if halves.low is None or halves.high is None or error is None:
        return replace(halves, value=value)
    around = [_of_whole(halves.value + sign * error, first_share) for sign in (-1, 1)]
    return replace(
        halves,
        value=value,
        low=_of_whole(halves.low, first_share),
        high=_of_whole(halves.high, first_share),
        standard_error=(around[1] - around[0]) / 2,
    )


def _of_whole(correlation: float, first_share: float) -> float:
    """The reliability of a whole whose parts correlate so, in [0, 1]; ``nan`` stays."""
    if not 0 < correlation < 1:
        return correlation if np.isnan(correlation) else float(correlation >= 1)
    both = 4 * first_share * (1 - first_share)
    # Horst's, times what keeps it exact near a correlation of 1.
    rest = (1 - correlation) * (1 + correlation)
    root = sqrt(correlation**2 + both * rest)
    return min(1.0, 2 * correlation / (root + correlation))


_MODEL_ERRORS: Final = ((0.8, 0.02), (0.5, 0.07), (0.0, 0.25))
"""From which share that is kept on to what the stated one may be off by with endlessly many clips,
by simulation."""
_NORMAL: Final = 1.96
_N_TRUE: Final = 400
"""True scores that are told apart."""
_MOST_OBSERVED: Final = 1000
"""Groups of observed scores that are told apart, where there are more scores."""
_STEPS: Final = 10
"""Steps towards what the scores say of the true ones: with more, what is not as the model has it is
taken for a difference of clips."""
_EDGE: Final = 1e-9
"""How near 0 and 1 a true score is."""
_SAME: Final = 1e-5
"""Standard deviation below which scores are the same."""
_CHANCE: Final = 1e-5
"""Reliability below which scores say nothing, and below 1 by which they say all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepError:
    """How far a list of the best clips is from that of the truly best."""

    share: float
    """Expected share of the kept clips that are not among as many with the highest true scores, in
    [0, 1]; ``nan`` where it cannot be told."""
    low: float
    """Lower end of its 95 % interval; ``nan`` where ``share`` is."""
    high: float
    """Upper end of the same."""
    n_kept: int
    n_clips: int
    """Those with a score."""

    @property
    def dropped_share(self) -> float:
        """Expected share of the dropped clips that are among the truly best.

        There are as many of them as are wrongly kept; ``nan`` where none is dropped, or ``share``
        is.
        """
        n_dropped = self.n_clips - self.n_kept
        return self.share * self.n_kept / n_dropped if n_dropped else float("nan")


def keep_error(scores: Floats, reliability: Interval, *, keep: float) -> KeepError:
    """The share of the kept clips that do not belong among the best by their true scores.

    A clip's true score is what endlessly many questions (or judge runs) like its own would give.
    The true scores' spread follows from that of the scores and their reliability; given a true
    score, the observed one is spread as a share right of so many independent questions that the
    reliability comes out, whatever the score is made of. So each observed score says how likely it
    is that the true one is below the cut.

    Args:
        scores: Shape (n_clips,), each in [0, 1]; ``nan`` is none, and such clips are not kept.
        reliability: See :func:`score_reliability`.
        keep: Share of the clips with a score that is kept, in (0, 1].

    Returns:
        The expected share with its interval: where the reliability may lie, what chance does to
        these clips, and :func:`model_error`. ``nan`` where no clip is kept, all scores are the
        same, or the reliability is ``nan``; 0 where all are kept. Clips with the same true score
        count as wrong where one is kept for another: then it is too high.

    Raises:
        ValueError: If a score is not in [0, 1], or ``keep`` is no such share.

    Source:
        Our own. The prior is a beta distribution by moments (Skellam, 1948; of test scores Keats
        and Lord, 1962), reweighted by a few steps of the EM algorithm (Laird, Nonparametric maximum
        likelihood estimation of a mixing distribution, 1978). In the simulations of
        ``benchmarks/keep_error.py``, where the truth is known, it is within 2 percentage points
        with ``keep`` from 0.8 on, where a bivariate normal distribution is off by up to 4; with 0.5
        in five of six cases, else within 7: few questions meet two groups of clips far apart, or a
        rating of few steps hardly moves from run to run. With less than 0.5 it may be far too low
        for ratings near the end of their scale. Where each of a clip's questions asks for another
        aspect it is too high by up to a fourth of itself, as the reliability is too low.

    Ten clips of each number right of 5 questions; the halves say that half the spread is noise:

    >>> from lmms_eval_captions.metrics.intervals import Interval
    >>> half = Interval(
    ...     value=0.5, low=0.4, high=0.6, standard_error=0.05, n_videos=60, method="halves"
    ... )
    >>> found = keep_error(np.repeat(np.arange(6) / 5, 10), half, keep=0.8)
    >>> found.n_kept, round(found.share, 3), round(found.low, 3), round(found.high, 3)
    (48, 0.114, 0.021, 0.206)
    """
    known = scores[~np.isnan(scores)]
    if ((known < 0) | (known > 1)).any():
        raise ValueError(
            f"keep_error: expected scores in [0, 1], got {known.min():g} to {known.max():g}"
        )
    if not 0 < keep <= 1:
        raise ValueError(f"keep_error: expected 0 < keep <= 1, got {keep!r}")
    n_clips = len(known)
    n_kept = round(keep * n_clips)
    share, low, high = float("nan"), float("nan"), float("nan")
    if n_kept and n_kept == n_clips:
        share, low, high = 0.0, 0.0, 0.0
    elif n_kept and known.std() > _SAME and not isnan(reliability.value):
        observed = _observed(known, n_kept)
        share = _wrong_share(observed, reliability.value)
        ends = _ends(observed, share, reliability)
        low, high = _widened(ends, share, n_kept=n_kept, off=model_error(keep))
    return KeepError(share=share, low=low, high=high, n_kept=n_kept, n_clips=n_clips)


def model_error(keep: float) -> float:
    """What a stated share may be off by with endlessly many clips, because no model is true.

    Args:
        keep: Share of the clips that is kept, in (0, 1].

    Returns:
        A difference of shares in (0, 1), from the simulations of ``benchmarks/keep_error.py``.

    >>> model_error(0.8), model_error(0.5)
    (0.02, 0.07)
    """
    return next(error for least, error in _MODEL_ERRORS if keep >= least)


class _Observed(NamedTuple):
    """Observed scores, in ascending order; arrays of shape (n_observed,)."""

    scores: Floats
    shares: Floats
    """Of the clips, that have this score."""
    kept: Floats
    """Of the clips, that have this score and are kept."""
    mean: float
    variance: float

    @property
    def kept_share(self) -> float:
        """Of all clips."""
        return float(self.kept.sum())


def _observed(scores: Floats, n_kept: int) -> _Observed:
    values, counts = np.unique(scores, return_counts=True)
    if len(values) > _MOST_OBSERVED:
        groups = (np.cumsum(counts) - counts) * _MOST_OBSERVED // len(scores)
        groups = np.unique(groups, return_inverse=True)[1]
        sums = np.bincount(groups, values * counts)
        counts = np.bincount(groups, counts).astype(np.intp)
        values = sums / counts
    above = len(scores) - np.cumsum(counts)
    kept = np.clip(n_kept - above, 0, counts)
    n_clips = len(scores)
    return _Observed(
        values, counts / n_clips, kept / n_clips, float(scores.mean()), float(scores.var())
    )


def _wrong_share(observed: _Observed, reliability: float) -> float:
    """The expected share of kept clips whose true score is below the cut of the true scores."""
    dropped = 1 - observed.kept_share
    if reliability <= _CHANCE:
        return dropped
    if reliability >= 1 - _CHANCE:
        return 0.0
    chances = _true_given_observed(observed, reliability)
    of_true = observed.shares @ chances
    rests = dropped - (np.cumsum(of_true) - of_true)
    below = np.clip(rests / np.maximum(of_true, np.finfo(np.float64).tiny), 0, 1)
    return float(observed.kept @ (chances @ below)) / observed.kept_share


def _true_given_observed(observed: _Observed, reliability: float) -> Floats:
    """Shape (n_observed, n_true): the chance of each true score, in ascending order."""
    from scipy.special import betaincinv

    mean = observed.mean
    prior = mean * (1 - mean) / (reliability * observed.variance) - 1
    n_questions = prior * reliability / (1 - reliability)
    places = (np.arange(_N_TRUE) + 0.5) / _N_TRUE
    true = np.clip(betaincinv(prior * mean, prior * (1 - mean), places), _EDGE, 1 - _EDGE)
    right = observed.scores[:, None]
    logs = n_questions * (right * np.log(true) + (1 - right) * np.log1p(-true))
    likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(_N_TRUE, 1 / _N_TRUE)
    for _ in range(_STEPS):
        weights *= likelihoods.T @ (observed.shares / (likelihoods @ weights))
    chances: Floats = likelihoods * weights / (likelihoods @ weights)[:, None]
    return chances


def _ends(observed: _Observed, share: float, reliability: Interval) -> tuple[float, float]:
    """The shares at the ends of the reliability's interval, with ``share`` between them."""
    known = [
        reliability.value if end is None else end for end in (reliability.high, reliability.low)
    ]
    low, high = (_wrong_share(observed, each) for each in known)
    return min(low, share), max(high, share)


def _widened(
    ends: tuple[float, float], share: float, *, n_kept: int, off: float
) -> tuple[float, float]:
    """The same for these very clips, and with what the model leaves out."""
    # As if the kept clips were drawn one by one, but never below half a clip.
    chance = _NORMAL * sqrt(max(share * (1 - share), 1 / (4 * n_kept)) / n_kept)
    low = share - hypot(share - ends[0], chance, off)
    high = share + hypot(ends[1] - share, chance, off)
    return max(0.0, low), min(1.0, high)


_DECIMALS: Final = 9
"""Scores that are the same to so many places are tied: the rest is rounding."""
_DIGEST_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptClips:
    """The kept clips, and where the cut is."""

    mask: NDArray[np.bool_]
    """Shape (n_clips,): which are kept."""
    cutoff: float
    """The lowest score that is kept, to 9 decimals; ``nan`` where no clip is."""
    n_tied_kept: int
    """Kept clips with that score."""
    n_tied_dropped: int
    """Dropped clips with that score."""


def kept_clips(clip_ids: Sequence[str], scores: Floats, *, keep: float) -> KeptClips:
    """The best clips by their scores, ``round(keep * n)`` of the n that have one.

    Of clips tied at the cut those with the smallest hash of their id are kept: the same ones
    whatever order the clips come in and whatever else is kept, and which says nothing of a clip.

    Args:
        clip_ids: Shape (n_clips,), each clip's own; read where its score is tied at the cut alone.
        scores: Shape (n_clips,), higher is better; ``nan`` is none, and such clips are never kept.
        keep: Share of the clips with a score, in (0, 1].

    Returns:
        A mask of the clips as they came, the score at the cut, and the clips tied there.

    Raises:
        ValueError: If there are not as many ids as scores, a score is infinite, or ``keep`` is no
            such share.

    Source:
        Our own.

    >>> scores = np.array([0.8, 1.0, 0.6, 0.8, np.nan, 0.8])
    >>> found = kept_clips(["a", "b", "c", "d", "e", "f"], scores, keep=0.6)
    >>> found.mask.tolist(), found.cutoff, found.n_tied_kept, found.n_tied_dropped
    ([True, True, False, False, False, True], 0.8, 2, 1)
    """
    if scores.shape != (len(clip_ids),):
        raise ValueError(
            f"kept_clips: expected a score of each of {len(clip_ids)} clips, got {scores.shape}"
        )
    if np.isinf(scores).any():
        raise ValueError("kept_clips: expected scores that are finite or nan, got an infinite one")
    if not 0 < keep <= 1:
        raise ValueError(f"kept_clips: expected 0 < keep <= 1, got {keep!r}")
    rounded = np.round(scores, _DECIMALS)
    known = rounded[~np.isnan(rounded)]
    n_kept = round(keep * len(known))
    if not n_kept:
        none = np.zeros(len(scores), dtype=np.bool_)
        return KeptClips(mask=none, cutoff=float("nan"), n_tied_kept=0, n_tied_dropped=0)
    known.partition(len(known) - n_kept)
    cutoff = known[len(known) - n_kept]
    mask = rounded > cutoff
    tied = np.flatnonzero(rounded == cutoff)
    n_tied_kept = n_kept - int(mask.sum())
    mask[_first_by_hash(tied, clip_ids, n_tied_kept)] = True
    return KeptClips(
        mask=mask,
        cutoff=float(cutoff),
        n_tied_kept=n_tied_kept,
        n_tied_dropped=len(tied) - n_tied_kept,
    )


def _first_by_hash(
    places: NDArray[np.intp], clip_ids: Sequence[str], n_first: int
) -> NDArray[np.intp]:
    """The places of the clips with the smallest hashes of their ids, ``n_first`` >= 1 of them."""
    if n_first == len(places):
        return places
    digests = (
        blake2b(clip_ids[place].encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES)
        for place in places
    )
    hashes = np.fromiter(
        (int.from_bytes(digest.digest(), "big") for digest in digests),
        dtype=np.uint64,
        count=len(places),
    )
    first: NDArray[np.intp] = places[np.argpartition(hashes, n_first - 1)[:n_first]]
    return first
