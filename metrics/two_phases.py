"""A sample in two phases: videos with all their pairs, then people's labels of some pairs."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]


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
