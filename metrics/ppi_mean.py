"""A score that people's labels of a few questions correct: prediction-powered inference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum, nan
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.metrics.two_phases import Pairs, TwoPhases

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

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
