"""Means over all from a sample that was judged and a cheap judge's verdicts on all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum, nan
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class StratifiedError:
    """The error of a sum over a population of which a stratified sample is known."""

    standard_error: float
    """In the unit of the values; 0 where every stratum is known whole."""
    freedom: float
    """Degrees of freedom of the variance; infinite where there is none."""

    def half_width(self, level: float = 0.95) -> float:
        """Half the width of the interval at a level in (0, 1); 0 without an error."""
        if not self.standard_error:
            return 0.0
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, (1 + level) / 2)) * self.standard_error


def stratified_error(values: Floats, strata: Places, sizes: Floats) -> StratifiedError:
    """The error of the estimated sum over all units, of which some were drawn in each stratum.

    Units are drawn without replacement, so that what is known of a stratum moves no error; nothing
    is said of another population, such as other videos.

    Args:
        values: Shape (n_drawn,): what each drawn unit adds to the sum.
        strata: Shape (n_drawn,): the stratum of each, 0, 1, ...; at least two of a stratum are
            drawn that has two.
        sizes: Shape (n_strata,): units of each stratum, drawn or not.

    Returns:
        The standard error and its degrees of freedom.

    Source:
        Cochran, Sampling Techniques (1977), theorem 5.5; the degrees of freedom are Satterthwaite's
        (Biometrics Bulletin 2, 1946), there equation 5.16.

    Two strata of 4 and of 2, of which 2 and 2 are drawn: 4 * 4 * (1 - 2 / 4) * 2 / 2 = 8.

    >>> strata = np.array([0, 0, 1, 1])
    >>> found = stratified_error(np.array([1.0, 3.0, 5.0, 9.0]), strata, np.array([4.0, 2.0]))
    >>> round(found.standard_error**2, 9), found.freedom
    (8.0, 1.0)
    """
    n_drawn = np.bincount(strata, minlength=len(sizes)).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.bincount(strata, values, minlength=len(sizes)) / n_drawn
        off = values - means[strata]
        squares = np.bincount(strata, off**2, minlength=len(sizes)) / (n_drawn - 1)
        parts = sizes**2 * (1 - n_drawn / sizes) * squares / n_drawn
        parts = np.where((n_drawn > 1) & (n_drawn < sizes), parts, 0.0)
        variance = float(parts.sum())
        divisor = float(np.where(parts > 0, parts**2 / (n_drawn - 1), 0.0).sum())
    freedom = variance**2 / divisor if divisor > 0 else float("inf")
    return StratifiedError(float(np.sqrt(variance)), freedom)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """All judged pairs of a question and a caption, of which people have labelled some."""

    judge: Floats
    """Shape (n_pairs, 2): what the judge's verdict adds to the metric's numerator and denominator;
    a metric that is a mean has 1 in all denominators."""
    people: Floats
    """The same by people's labels; whatever is there does not count where none was given."""
    is_labelled: NDArray[np.bool_]
    """Shape (n_pairs,)."""
    videos: Places
    """Shape (n_pairs,): the cluster of each pair, 0, 1, ..."""
    strata: Places
    """Shape (n_pairs,): the stratum that each pair was drawn from, 0, 1, ...; 0 for all where the
    sample is one of all pairs. Within a stratum, labels must have been drawn at random."""
    weights: Floats
    """Shape (n_pairs,), > 0: how much a pair counts in the metric; 1 where all count alike, one
    over the number of its video's questions where the metric is a mean over videos of means."""


class TwoPhases:
    """The two phases of the sample: videos with all their pairs, then labels of some pairs."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self._share: Floats = pairs.weights / pairs.weights.sum()
        labelled = np.where(pairs.is_labelled, self._share, 0.0)
        self._of_strata = np.bincount(pairs.strata, self._share)
        drawn = np.bincount(pairs.strata, labelled, minlength=len(self._of_strata))
        counts = np.bincount(pairs.strata, pairs.is_labelled, minlength=len(self._of_strata))
        self.n_labelled_videos = int(np.unique(pairs.videos[pairs.is_labelled]).size)
        """Videos with a label."""
        self.has_all_strata = bool((counts > 0)[pairs.strata].all())
        """Whether every stratum has a label."""
        with np.errstate(divide="ignore", invalid="ignore"):
            # What a labelled pair stands for: its stratum's share over that of its labels.
            self._label_share = np.nan_to_num(labelled * (self._of_strata / drawn)[pairs.strata])
        self._people: Floats = np.where(pairs.is_labelled[:, None], pairs.people, 0.0)

    def ratio(self, lam: float) -> float:
        """The estimate, as a share; ``nan`` where its denominator is not above 0."""
        top, bottom = self._estimate(lam)
        return float(top / bottom) if bottom > 0 else nan

    def slopes(self, ratio: float, lam: float) -> tuple[Floats, Floats]:
        """Of each video on the estimate: what labels have of it, and what ``lam`` multiplies.

        Shape (n_videos,) each, as shares; linearised where the metric is this share, with the
        denominator that it has for ``lam``.
        """
        of_labels, of_judge = self._influences(ratio)
        bottom = self._estimate(lam)[1]
        return of_labels / bottom, of_judge / bottom

    def influences(self, ratio: float, lam: float) -> Floats:
        """Of each video on the estimate, shape (n_videos,), as a share.

        The root of the sum of their squares is the estimate's standard error.
        """
        of_labels, of_judge = self.slopes(ratio, lam)
        n = min(len(of_labels), self.n_labelled_videos)
        influences: Floats = np.sqrt(n / (n - 1)) * (of_labels + lam * of_judge)
        return influences

    def _estimate(self, lam: float) -> Floats:
        judge = self.pairs.judge
        # Sums of products and not ``@``, for which BLAS would start threads.
        of_judge = ((self._share - self._label_share)[:, None] * judge).sum(axis=0)
        of_people = (self._label_share[:, None] * self._people).sum(axis=0)
        estimate: Floats = lam * of_judge + of_people
        return estimate

    def _influences(self, ratio: float) -> tuple[Floats, Floats]:
        """Of each video on the estimate: what labels have of it, and what ``lam`` multiplies.

        Shape (n_videos,) each; linearised where the metric is this share.
        """
        people = self._people[:, 0] - ratio * self._people[:, 1]
        judge = self.pairs.judge[:, 0] - ratio * self.pairs.judge[:, 1]
        of_all = self._share * (judge - (self._share * judge).sum())
        labels, guesses = self._two_phases(people), self._two_phases(judge)
        videos = self.pairs.videos
        of_labels: Floats = np.bincount(videos, labels).astype(np.float64)
        of_judge: Floats = np.bincount(videos, of_all - guesses).astype(np.float64)
        return of_labels, of_judge

    def _two_phases(self, values: Floats) -> Floats:
        """Influence of each pair on the mean of values that are known where there are labels."""
        strata = self.pairs.strata
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.bincount(strata, self._label_share * values) / self._of_strata
        of_strata = np.nan_to_num(means)[strata]
        first: Floats = self._share * (of_strata - (self._share * of_strata).sum())
        return first + self._label_share * (values - of_strata)


_NOTHING: Final = 1e-18
_SMALL: Final = 1e-12
"""Standard error of a share that is left of rounding."""
_FEW: Final = 5
"""Labels that differ from the judge below which the size of the correction is mere guessing."""
_FEW_VIDEOS: Final = 20
"""Videos with labels below which the interval is rough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A metric as people would have graded it, and what it may be on other videos like these."""

    value: float
    """In the metric's unit; ``nan`` where it cannot be given."""
    low: float | None
    high: float | None
    """Ends of the interval; ``None`` where none can be given."""
    standard_error: float | None
    lam: float
    """Trust in the judge, in [0, 1]: 0 counts the labels alone, 1 adds what people correct on
    average to the judge's score."""
    n_labels: int
    n_videos: int
    """Videos with a label."""
    note: str = ""
    """Why there is no interval, or what a reader must know of it; else empty."""


def ppi_mean(
    *terms: Pairs,
    scale: float,
    bounds: tuple[float, float],
    lam: float | None = None,
    level: float = 0.95,
) -> Corrected:
    """PPI++: the judge's verdicts on all pairs, corrected by people's labels of some.

    With ``f`` the judge's values, ``y`` people's, and both means weighted, the estimate is
    ``lam * mean(f, all) + mean(y - lam * f, labelled)``; of a ratio, such as a precision, both
    sides of it are estimated so. It is right whatever the judge is like: a poor one costs width.
    Its standard error is that of its linearisation summed by video, so that questions of one
    video may go together, in people's labels, in the judge's and in where they differ. It holds for
    other videos like these, as the interval of the judge's own score does.

    A metric that is the plain mean of several tasks has a term for each: the estimate is the mean
    of theirs, with one lam for all, since few labels of each would tune it badly. The influences of
    a video on all of them are summed before they are squared, so that tasks of the same videos may
    go together, too.

    Args:
        terms: All pairs and labels, n_pairs >= 1, of each task whose mean the metric is, most often
            one; their videos are numbered together.
        scale: What is printed for a share of 1.
        bounds: Lowest and highest value that the metric can have.
        lam: 0 gives the labels alone; ``None`` tunes it, which gives the smallest standard error.
        level: Share of such intervals that cover, in (0, 1).

    Source:
        Angelopoulos, Duchi and Zrnic, PPI++: Efficient Prediction-Powered Inference (2023), arXiv
        2311.01453, sections 2 and 6 (power tuning); as published, lam is tuned at the estimate for
        lam = 1 and cut to [0, 1]. Their unlabelled pairs are others than the labelled; here the
        first mean is over all, the same estimate where their lam is ours times n_unlabelled
        over n_pairs. Deviation: variances are clustered by video, strata have the weights of their
        pairs, and t with a degree of freedom per labelled video, less one, stands for the normal
        distribution; of several terms, as Satterthwaite (Biometrics Bulletin 2, 1946) weighs them.
        Cochran, Sampling Techniques (1977), section 12.2, for the two phases.

    >>> judge = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    >>> people = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 1.0], [nan, nan]])
    >>> pairs = Pairs(
    ...     judge=judge, people=people, is_labelled=np.array([True, True, True, False]),
    ...     videos=np.arange(4), strata=np.zeros(4, dtype=np.intp), weights=np.ones(4))
    >>> [round(ppi_mean(pairs, scale=100.0, bounds=(0, 100), lam=k).value, 2) for k in (0, 1)]
    [33.33, 41.67]
    """
    phases = [TwoPhases(pairs) for pairs in terms]
    lam = _tuned(phases) if lam is None else lam
    ratios = [each.ratio(lam) for each in phases]
    labelled = np.concatenate([pairs.videos[pairs.is_labelled] for pairs in terms])
    found = Corrected(
        value=nan, low=None, high=None, standard_error=None, lam=nan, n_labels=len(labelled),
        n_videos=int(np.unique(labelled).size),
    )  # fmt: skip
    note = _why_none(phases, ratios)
    if note:
        return replace(found, note=note)
    middle = scale * fsum(ratios) / len(terms)
    value = min(max(middle, bounds[0]), bounds[1])
    found = replace(found, value=value, lam=lam)
    if min(each.n_labelled_videos for each in phases) < 2:
        return replace(found, note="no interval: fewer than 2 videos have a label")
    error, freedom = _standard_error(phases, ratios, lam)
    if error <= _SMALL:
        return replace(found, note="no interval: all labels say the same")
    from scipy.special import stdtrit

    reach = float(stdtrit(freedom, (1 + level) / 2)) * scale * error
    return replace(
        found,
        low=max(bounds[0], middle - reach),
        high=min(bounds[1], middle + reach),
        standard_error=scale * error,
        note=_doubt(phases, is_trusted=found.lam > 0),
    )


def _why_none(phases: Sequence[TwoPhases], ratios: Sequence[float]) -> str:
    """Why there is no estimate, empty where there is."""
    if not all(each.pairs.is_labelled.any() for each in phases):
        return "not given: there is no label"
    if not all(each.has_all_strata for each in phases):
        return "not given: a stratum has no label"
    return "not given: no label counts in its denominator" if np.isnan(ratios).any() else ""


def _tuned(phases: Sequence[TwoPhases]) -> float:
    """The ``lam`` of the smallest standard error, tuned at the estimate for 1."""
    ratios = [each.ratio(1.0) for each in phases]
    if np.isnan(ratios).any():
        return 0.0
    slopes = [each.slopes(ratio, 1.0) for each, ratio in zip(phases, ratios, strict=True)]
    of_labels, of_judge = (_summed(of_terms) for of_terms in zip(*slopes, strict=True))
    square = float((of_judge**2).sum())
    # What is left of rounding where the judge says the same of all.
    is_nothing = square <= _NOTHING * float((of_labels**2).sum())
    return 0.0 if is_nothing else min(max(-float(of_labels @ of_judge) / square, 0.0), 1.0)


def _summed(of_terms: Sequence[Floats]) -> Floats:
    """What each video has on all terms together; a term may lack the last videos."""
    summed = np.zeros(max(map(len, of_terms)))
    for of_term in of_terms:
        summed[: len(of_term)] += of_term
    return summed


def _standard_error(
    phases: Sequence[TwoPhases], ratios: Sequence[float], lam: float
) -> tuple[float, float]:
    """Of the mean over terms, as a share, and its degrees of freedom."""
    of_terms = [
        each.influences(ratio, lam) / len(phases)
        for each, ratio in zip(phases, ratios, strict=True)
    ]
    influences = _summed(of_terms)
    variances = np.array([(of_term**2).sum() for of_term in of_terms])
    freedoms = np.array([each.n_labelled_videos - 1 for each in phases])
    divisor = float((variances**2 / freedoms).sum())
    freedom = float(variances.sum() ** 2) / divisor if divisor else float(freedoms.min())
    return float(np.sqrt((influences**2).sum())), freedom


def _doubt(phases: Sequence[TwoPhases], *, is_trusted: bool) -> str:
    """What a reader must know of the interval, empty where it can be relied on."""
    n_videos = min(each.n_labelled_videos for each in phases)
    if n_videos < _FEW_VIDEOS:
        return f"only {n_videos} videos have a label: the interval is a rough guess"
    all_pairs = [each.pairs for each in phases]
    n_differ = sum(
        int((pairs.people != pairs.judge)[pairs.is_labelled].any(axis=1).sum())
        for pairs in all_pairs
    )
    if not is_trusted or n_differ >= _FEW:
        return ""
    n_labels = sum(int(pairs.is_labelled.sum()) for pairs in all_pairs)
    return (
        f"people differ from the judge on {n_differ} of {n_labels} labels: too few to tell how far "
        "the judge is off; the interval may be too narrow"
    )
