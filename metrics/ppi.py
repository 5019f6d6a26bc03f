"""Prediction-powered inference: a judge's score, corrected by people's labels of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum, nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.metrics.parts import Floats, Indices, t_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """All judged pairs of a question and a caption, of which people have labelled some."""

    judge: Floats
    """Shape (n_pairs, 2): what the judge's verdict adds to the metric's numerator and denominator,
    which is 1 for a mean."""
    people: Floats
    """The same by people's labels; ignored without a label."""
    is_labelled: NDArray[np.bool_]
    """Shape (n_pairs,)."""
    videos: Indices
    """Shape (n_pairs,): the cluster of each pair, from 0."""
    strata: Indices
    """Shape (n_pairs,): the stratum that each pair was drawn from, from 0. Within a stratum, labels
    must have been drawn at random."""
    weights: Floats
    """Shape (n_pairs,), > 0: how much a pair counts in the metric; 1 over the number of its video's
    questions for a metric that is a mean over videos of means."""


_NO_SPREAD: Final = 1e-18
"""Variance of the judge, as a share of the labels', that is rounding."""
_NO_ERROR: Final = 1e-12
"""Standard error of a share that is rounding."""
_FEW_DIFFER: Final = 5
"""Labels that differ from the judge below which the correction is a guess."""
_FEW_VIDEOS: Final = 20
"""Videos with labels below which the interval is a rough guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A metric as people would have graded it, with its interval over other videos like these."""

    value: float = nan
    """In the metric's unit; ``nan`` if it cannot be given."""
    low: float | None = None
    high: float | None = None
    """Ends of the 95% interval; ``None`` if none can be given."""
    standard_error: float | None = None
    lam: float = nan
    """Trust in the judge, in [0, 1]: 0 uses the labels alone, 1 adds people's mean correction to
    the judge's score."""
    n_labels: int
    n_videos: int
    """Videos with a label."""
    note: str = ""
    """Why there is no interval, or a warning; else empty."""


def ppi_mean(
    *terms: Pairs, scale: float, bounds: tuple[float, float], lam: float | None = None
) -> Corrected:
    """Return the judge's score on all pairs, corrected by people's labels of some (PPI++).

    With ``f`` the judge's values, ``y`` people's, and both means weighted, the estimate is
    ``lam * mean(f, all) + mean(y - lam * f, labelled)``; both sides of a ratio are estimated so. A
    poor judge costs width, not bias. The standard error is that of its linearisation by video.

    Args:
        terms: The pairs of each task whose mean the metric is, most often one; their videos are
            numbered together, and all share one lam.
        scale: Value of a metric that is a share of 1.
        bounds: Lowest and highest possible value.
        lam: 0 uses the labels alone; ``None`` tunes it for the smallest standard error.

    Source:
        Angelopoulos, Duchi and Zrnic, PPI++: Efficient Prediction-Powered Inference (2023), arXiv
        2311.01453, sections 2 and 6 (power tuning, at the estimate for lam = 1, cut to [0, 1]);
        their lam is ours times n_unlabelled over n_pairs, as our first mean is over all pairs.
        Deviation: variances are clustered by video, strata are weighted, and t with n - 1 degrees
        of freedom for n labelled videos (several terms: Satterthwaite, 1946) replaces the normal
        distribution. Two phases: Cochran, Sampling Techniques (1977), section 12.2.

    >>> judge = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    >>> people = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 1.0], [nan, nan]])
    >>> pairs = Pairs(
    ...     judge=judge, people=people, is_labelled=np.array([True, True, True, False]),
    ...     videos=np.arange(4), strata=np.zeros(4, dtype=np.intp), weights=np.ones(4))
    >>> [round(ppi_mean(pairs, scale=100.0, bounds=(0, 100), lam=k).value, 2) for k in (0, 1)]
    [33.33, 41.67]
    """
    phases = [_TwoPhases(pairs) for pairs in terms]
    lam = _tuned_lam(phases) if lam is None else lam
    ratios = [of.ratio(lam) for of in phases]
    labelled = np.concatenate([pairs.videos[pairs.is_labelled] for pairs in terms])
    found = Corrected(n_labels=len(labelled), n_videos=int(np.unique(labelled).size))
    note = _why_no_value(phases, ratios)
    if note:
        return replace(found, note=note)
    middle = scale * fsum(ratios) / len(terms)
    found = replace(found, value=min(max(middle, bounds[0]), bounds[1]), lam=lam)
    if min(of.n_videos for of in phases) < 2:
        return replace(found, note="no interval: fewer than 2 videos have a label")
    error, freedom = _standard_error(phases, ratios, lam)
    if error <= _NO_ERROR:
        return replace(found, note="no interval: all labels say the same")
    reach = t_quantile(freedom) * scale * error
    return replace(
        found,
        low=max(bounds[0], middle - reach),
        high=min(bounds[1], middle + reach),
        standard_error=scale * error,
        note=_warning(phases, is_trusted=lam > 0),
    )


class _TwoPhases:
    """The two phases of a sample: videos with all their pairs, then labels of some pairs."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self._share = pairs.weights / pairs.weights.sum()
        self._of_strata = np.bincount(pairs.strata, self._share)
        labelled = np.where(pairs.is_labelled, self._share, 0.0)
        drawn = np.bincount(pairs.strata, labelled)
        self.n_videos = len(np.unique(pairs.videos[pairs.is_labelled]))
        """Videos with a label."""
        self.has_all_strata = bool((drawn > 0)[pairs.strata].all())
        with np.errstate(divide="ignore", invalid="ignore"):
            # What a labelled pair stands for: its stratum's share over that of its labels.
            self._label_share = np.nan_to_num(labelled * (self._of_strata / drawn)[pairs.strata])
        self._people = np.where(pairs.is_labelled[:, None], pairs.people, 0.0)

    def ratio(self, lam: float) -> float:
        """Return the estimate, as a share; ``nan`` if its denominator is not above 0."""
        top, bottom = self._sums(lam)
        return float(top / bottom) if bottom > 0 else nan

    def slopes(self, ratio: float, lam: float) -> tuple[Floats, Floats]:
        """Return what each video adds to a ratio by labels, and what ``lam`` multiplies."""
        people = self._people[:, 0] - ratio * self._people[:, 1]
        judge = self.pairs.judge[:, 0] - ratio * self.pairs.judge[:, 1]
        of_all = self._share * (judge - (self._share * judge).sum())
        _, bottom = self._sums(lam)
        videos = self.pairs.videos
        of_labels = np.bincount(videos, self._influences(people)) / bottom
        return of_labels, np.bincount(videos, of_all - self._influences(judge)) / bottom

    def _sums(self, lam: float) -> Floats:
        of_judge = (self._share - self._label_share) @ self.pairs.judge
        return np.asarray(lam * of_judge + self._label_share @ self._people)

    def _influences(self, values: Floats) -> Floats:
        """Return the influence of each pair on the mean of values that labels reveal."""
        strata = self.pairs.strata
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.bincount(strata, self._label_share * values) / self._of_strata
        of_strata = np.nan_to_num(means)[strata]
        first = self._share * (of_strata - (self._share * of_strata).sum())
        return np.asarray(first + self._label_share * (values - of_strata))


def _why_no_value(phases: Sequence[_TwoPhases], ratios: Sequence[float]) -> str:
    if not all(of.n_videos for of in phases):
        return "not given: there is no label"
    if not all(of.has_all_strata for of in phases):
        return "not given: a stratum has no label"
    return "not given: no label counts in its denominator" if np.isnan(ratios).any() else ""


def _tuned_lam(phases: Sequence[_TwoPhases]) -> float:
    ratios = [of.ratio(1.0) for of in phases]
    if np.isnan(ratios).any():
        return 0.0
    slopes = [of.slopes(ratio, 1.0) for of, ratio in zip(phases, ratios, strict=True)]
    of_labels, of_judge = (_summed(of_terms) for of_terms in zip(*slopes, strict=True))
    square = float((of_judge**2).sum())
    if square <= _NO_SPREAD * float((of_labels**2).sum()):
        return 0.0
    return min(max(-float(of_labels @ of_judge) / square, 0.0), 1.0)


def _summed(of_terms: Sequence[Floats]) -> Floats:
    """Sum each video's influences over terms; a term may lack the last videos."""
    summed = np.zeros(max(map(len, of_terms)))
    for of_term in of_terms:
        summed[: len(of_term)] += of_term
    return summed


def _standard_error(
    phases: Sequence[_TwoPhases], ratios: Sequence[float], lam: float
) -> tuple[float, float]:
    """Return the error of the mean over terms, as a share, and its degrees of freedom."""
    of_terms = []
    for of, ratio in zip(phases, ratios, strict=True):
        of_labels, of_judge = of.slopes(ratio, lam)
        n = min(len(of_labels), of.n_videos)
        of_terms.append(np.sqrt(n / (n - 1)) * (of_labels + lam * of_judge) / len(phases))
    variances = np.array([(of_term**2).sum() for of_term in of_terms])
    freedoms = np.array([of.n_videos - 1 for of in phases])
    divisor = float((variances**2 / freedoms).sum())
    freedom = float(variances.sum() ** 2) / divisor if divisor else float(freedoms.min())
    return float(np.sqrt((_summed(of_terms) ** 2).sum())), freedom


def _warning(phases: Sequence[_TwoPhases], *, is_trusted: bool) -> str:
    n_videos = min(of.n_videos for of in phases)
    if n_videos < _FEW_VIDEOS:
        return f"only {n_videos} videos have a label: the interval is a rough guess"
    terms = [of.pairs for of in phases]
    differs = [(of.people != of.judge).any(axis=1)[of.is_labelled] for of in terms]
    n_differ, n_labels = sum(map(sum, differs)), sum(map(len, differs))
    if not is_trusted or n_differ >= _FEW_DIFFER:
        return ""
    return (
        f"people differ from the judge on {n_differ} of {n_labels} labels: too few to tell how far "
        "the judge is off; the interval may be too narrow"
    )
