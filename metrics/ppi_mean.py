"""A score that people's labels of a few questions correct: prediction-powered inference."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

_NOTHING: Final = 1e-18
_FEW: Final = 5
"""Labels that differ from the judge below which the size of the correction is mere guessing."""
_FEW_VIDEOS: Final = 20
"""Videos with labels below which the interval is rough."""


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
    pairs: Pairs,
    *,
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

    Args:
        pairs: All pairs and labels, n_pairs >= 1.
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
        distribution. Cochran, Sampling Techniques (1977), section 12.2, for the two phases.

    >>> judge = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    >>> people = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 1.0], [nan, nan]])
    >>> pairs = Pairs(
    ...     judge=judge, people=people, is_labelled=np.array([True, True, True, False]),
    ...     videos=np.arange(4), strata=np.zeros(4, dtype=np.intp), weights=np.ones(4))
    >>> [round(ppi_mean(pairs, scale=100.0, bounds=(0, 100), lam=k).value, 2) for k in (0, 1)]
    [33.33, 41.67]
    """
    n_labels = int(pairs.is_labelled.sum())
    labelled_videos = int(np.unique(pairs.videos[pairs.is_labelled]).size)
    has_label = np.bincount(pairs.strata[pairs.is_labelled], minlength=pairs.strata.max() + 1) > 0
    if not has_label[pairs.strata].all():
        note = "not given: a stratum has no label" if n_labels else "not given: there is no label"
        return _without_ends(nan, nan, n_labels, labelled_videos, note)
    phases = _Phases(pairs)
    if lam is None:
        lam = phases.tuned(phases.ratio(1.0))
    ratio = phases.ratio(lam)
    if np.isnan(ratio):
        note = "not given: no label counts in its denominator"
        return _without_ends(nan, nan, n_labels, labelled_videos, note)
    value = min(max(scale * ratio, bounds[0]), bounds[1])
    if labelled_videos < 2:
        note = "no interval: fewer than 2 videos have a label"
        return _without_ends(value, lam, n_labels, labelled_videos, note)
    error = scale * phases.standard_error(ratio, lam)
    return _with_ends(value, scale * ratio, error, bounds, lam, phases, level)


def _without_ends(value: float, lam: float, n_labels: int, n_videos: int, note: str) -> Corrected:
    return Corrected(
        value=value, low=None, high=None, standard_error=None, lam=lam, n_labels=n_labels,
        n_videos=n_videos, note=note,
    )  # fmt: skip


def _with_ends(
    value: float,
    middle: float,
    error: float,
    bounds: tuple[float, float],
    lam: float,
    phases: _Phases,
    level: float,
) -> Corrected:
    from scipy.special import stdtrit

    pairs = phases.pairs
    n_videos = int(np.unique(pairs.videos[pairs.is_labelled]).size)
    reach = float(stdtrit(n_videos - 1, (1 + level) / 2)) * error
    labelled = pairs.is_labelled
    n_differ = int((pairs.people[labelled] != pairs.judge[labelled]).any(axis=1).sum())
    note = ""
    if n_videos < _FEW_VIDEOS:
        note = f"only {n_videos} videos have a label: the interval is a rough guess"
    elif lam > 0 and n_differ < _FEW:
        note = (
            f"people differ from the judge on {n_differ} of {int(labelled.sum())} labels: too few "
            "to tell how far the judge is off; the interval may be too narrow"
        )
    return Corrected(
        value=value, low=max(bounds[0], middle - reach), high=min(bounds[1], middle + reach),
        standard_error=error, lam=lam, n_labels=int(labelled.sum()), n_videos=n_videos, note=note,
    )  # fmt: skip


class _Phases:
    """The two phases of the sample: videos with all their pairs, then labels of some pairs."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self._share: Floats = pairs.weights / pairs.weights.sum()
        labelled = np.where(pairs.is_labelled, self._share, 0.0)
        self._of_strata = np.bincount(pairs.strata, self._share)
        drawn = np.bincount(pairs.strata, labelled, minlength=len(self._of_strata))
        with np.errstate(divide="ignore", invalid="ignore"):
            # What a labelled pair stands for: its stratum's share over that of its labels.
            self._label_share = np.nan_to_num(labelled * (self._of_strata / drawn)[pairs.strata])
        self._people: Floats = np.where(pairs.is_labelled[:, None], pairs.people, 0.0)

    def ratio(self, lam: float) -> float:
        """The estimate, as a share; ``nan`` where its denominator is not above 0."""
        top, bottom = self._estimate(lam)
        return float(top / bottom) if bottom > 0 else nan

    def tuned(self, ratio: float) -> float:
        """The ``lam`` of the smallest standard error where the metric is this share."""
        if np.isnan(ratio):
            return 0.0
        of_labels, of_judge = self._influences(ratio)
        square = float((of_judge**2).sum())
        # What is left of rounding where the judge says the same of all.
        is_nothing = square <= _NOTHING * float((of_labels**2).sum())
        return 0.0 if is_nothing else min(max(-float(of_labels @ of_judge) / square, 0.0), 1.0)

    def standard_error(self, ratio: float, lam: float) -> float:
        """Of the estimate, as a share."""
        of_labels, of_judge = self._influences(ratio)
        n_videos = len(of_labels)
        influences = (of_labels + lam * of_judge) / self._estimate(lam)[1]
        labelled = int(np.unique(self.pairs.videos[self.pairs.is_labelled]).size)
        n = min(n_videos, labelled)
        return float(np.sqrt((influences**2).sum() * n / (n - 1)))

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
