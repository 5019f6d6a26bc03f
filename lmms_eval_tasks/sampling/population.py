"""The questions that a sample is drawn of, and what is known of them, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """All questions about the captions of one or more tasks; arrays of shape (n_questions, ...).

    The score is the mean over its *terms* (tasks, or the pooled questions of all tasks) of a ratio
    of sums over questions.
    """

    terms: Places
    """The term that each question counts in: 0, 1, ..."""
    tasks: Places
    """The task that each question is of, 0, 1, ...: no stratum has questions of two."""
    captions: Places
    """The caption that it is about: 0, 1, ..."""
    weights: Floats
    """How much it counts in its term's sums, > 0: 1 where questions are pooled, one over the number
    of the caption's questions where the metric is a mean over videos."""
    has_means: bool
    """Whether the metric is a mean over videos of means over those of their questions that have a
    verdict."""
    control: Floats | None
    """Shape (n_questions, 2): what the cheap judge's verdict adds to numerator and denominator,
    ``None`` without a cheap judge."""
    keys: Floats
    """Random numbers in [0, 1); the questions with the smallest are asked. They follow from the
    question, so that a larger sample holds a smaller one."""
    scale: float
    """What is printed for a share of 1."""
    reach: float
    """How far apart what two verdicts add to a numerator can be, > 0."""

    @property
    def n_questions(self) -> int:
        """How many there are."""
        return len(self.terms)

    @property
    def n_terms(self) -> int:
        """Terms, of which the score is the mean."""
        return int(self.terms.max()) + 1 if len(self.terms) else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What a sample is, and what its questions stand for; arrays of shape (n_questions,)."""

    weights: Floats
    """Questions that each one stands for; 0 if it was not asked."""
    strata: Places
    """The stratum that it was drawn in, 0, 1, ...; -1 for all that were not drawn in one."""
    sizes: Floats
    """Shape (n_strata,): questions of each stratum."""
    lam: float | Floats
    """Trust in the cheap judge, in [0, 1]; 0 without one. Of several samples together, shape
    (n_questions,)."""

    @property
    def n_asked(self) -> int:
        """Questions that were asked."""
        return int((self.weights > 0).sum())


def effective_pairs(
    pairs: Floats, weights: Floats, control: Floats | None, lam: float | Floats
) -> Floats:
    """What each question adds to the sums over all of them, as far as the sample tells.

    Args:
        pairs: Shape (n_questions, n_runs, 2): what the judge's verdicts add; whatever is there
            does not count where a question was not asked.
        weights: Of :class:`Drawn`.
        control: Of :class:`Population`.
        lam: Of :class:`Drawn`; several samples together have one of each question.

    Returns:
        The same shape. Summed over all questions, and over those of any group, it is unbiased for
        the sum of ``pairs`` with every question asked: a drawn question stands for its weight, and
        the cheap judge's verdicts on all replace those on the drawn.

    Source:
        Cochran, Sampling Techniques (1977), sections 5.3 and 7.5 (difference estimator); as
        prediction-powered inference, Angelopoulos et al., PPI++ (2023), arXiv 2311.01453.

    >>> pairs = np.array([[[1.0, 1.0]], [[0.0, 0.0]]])
    >>> effective_pairs(pairs, np.array([2.0, 0.0]), None, 0.0)[:, 0].tolist()
    [[2.0, 2.0], [0.0, 0.0]]
    >>> control = np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> effective_pairs(pairs, np.array([2.0, 0.0]), control, 1.0)[:, 0].tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    asked = np.where(weights[:, None, None] > 0, pairs, 0.0) * weights[:, None, None]
    if control is None:
        return asked
    return np.asarray(asked + (lam * (1.0 - weights))[:, None, None] * control[:, None, :])


def normalised(pairs: Floats, weights: Floats, captions: Places) -> Floats:
    """Pairs of a mean of means, in which a caption counts as much as if all had a verdict.

    A caption's mean is over its questions with a verdict: these stand for those without one.

    Args:
        pairs: Shape (n_questions, n_runs, 2), 0 where there is no verdict.
        weights: Of :class:`Drawn`.
        captions: Of :class:`Population`.

    >>> pairs = np.array([[[1.0, 1.0]], [[0.0, 0.0]], [[0.0, 1.0]]])
    >>> normalised(pairs, np.ones(3), np.array([0, 0, 1]))[:, 0].tolist()
    [[2.0, 2.0], [0.0, 0.0], [0.0, 1.0]]
    """
    is_asked = weights > 0
    is_scored = is_asked[:, None] & (pairs[..., 1] != 0)
    if is_scored[is_asked].all():
        return pairs
    n_captions = int(captions.max()) + 1
    asked = np.bincount(captions, weights, minlength=n_captions)
    factors = np.ones(pairs.shape[:2])
    for run in range(pairs.shape[1]):
        scored = np.bincount(captions, weights * is_scored[:, run], minlength=n_captions)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors[:, run] = np.where(scored > 0, asked / scored, 1.0)[captions]
    return np.asarray(pairs * factors[..., None])
