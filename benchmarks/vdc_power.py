"""The chance to find a true difference of 1 point on VDC, by how alike two captioners are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

N_VIDEOS: Final = 1027
N_TASKS: Final = 5
QUESTIONS: Final = (11, 27)
"""Fewest and most questions of a video and aspect, nearly; their mean is VDC's 19."""
_ACCURACY: Final = 0.40
_POINTS: Final = 0.01


class Captioners(NamedTuple):
    """How two captioners go together."""

    correlation: float
    """Of two verdicts on a video in one aspect, before flips."""
    shared: float
    """Part of what makes a video hard that is the same for both, in [0, 1]."""
    coupled: float
    """Part of the questions of which the captions say the same or miss the same, in [0, 1]."""
    flips: float


class Power(NamedTuple):
    """What came of it."""

    by_video: float
    """Correlation of the two captioners' scores of single videos, which ``compare`` can tell."""
    by_video_and_task: float
    error: float
    """Standard error of the difference, in points, mean over simulations."""
    found: float
    """Simulations in which the interval is above 0, in percent."""


def measure_power(
    captioners: Captioners, *, simulations: int, seed: int, n_tasks: int = N_TASKS
) -> Power:
    """Simulate the whole of VDC: the mean of five aspects of the same videos."""
    from lmms_eval_captions.metrics.paired_interval import paired_interval

    rng = np.random.default_rng(seed)
    found, errors, correlations = [], [], []
    for _ in range(simulations):
        scores = _scores(captioners, rng, n_tasks)
        parts = [np.stack([of, np.ones_like(of)], axis=-1)[None, :, :, None] for of in scores]
        one = paired_interval(parts[0], parts[1], scale=100.0)
        found.append(one.low is not None and one.low > 0)
        errors.append(one.standard_error or 0.0)
        means = [of.mean(axis=1) for of in scores]
        correlations.append(
            (np.corrcoef(*means)[0, 1], np.corrcoef(scores[0][:, 0], scores[1][:, 0])[0, 1])
        )
    by_video, by_task = np.mean(correlations, axis=0)
    return Power(by_video, by_task, float(np.mean(errors)), 100 * float(np.mean(found)))


def power_table(*, simulations: int, seed: int) -> str:
    """Power by how alike the captioners are, a line for each design."""
    lines = [
        f"A true difference of 1 point on VDC: {N_VIDEOS:,} videos, five aspects, "
        f"{simulations:,} simulations each, 5 % flips",
        "correlation of   shared of  verdicts   correlation of the two       standard   found",
        "two verdicts     what is    coupled    captioners' scores of        error      in %",
        "on a video       hard                  a video, a video's aspect    in points",
    ]
    for correlation in (0.05, 0.1, 0.2, 0.3):
        for shared, coupled in ((0.0, 0.0), (0.5, 0.3), (0.7, 0.5), (0.9, 0.7)):
            captioners = Captioners(correlation, shared, coupled, 0.05)
            one = measure_power(captioners, simulations=simulations, seed=seed)
            lines.append(
                f"{correlation:<16g} {shared:<10g} {coupled:<10g} {one.by_video:<10.2f} "
                f"{one.by_video_and_task:<17.2f} {one.error:<10.3f} {one.found:<5.1f}"
            )
    return "\n".join(lines)


def _scores(captioners: Captioners, rng: np.random.Generator, n_tasks: int) -> list[Floats]:
    """Both captioners' scores of every video in every aspect, shape (n_videos, n_tasks)."""
    flips = captioners.flips
    shares = _shares(captioners, rng, n_tasks)
    sizes = rng.integers(QUESTIONS[0], QUESTIONS[1] + 1, size=(N_VIDEOS, n_tasks))
    coupled = rng.binomial(sizes, captioners.coupled)
    both = np.minimum(*shares)
    ways = [both, shares[0] - both, shares[1] - both, 1 - np.maximum(*shares)]
    n_both, *n_one, _ = np.moveaxis(rng.multinomial(coupled, np.stack(ways, axis=-1)), -1, 0)
    right = [
        n_both + n + rng.binomial(sizes - coupled, q) for n, q in zip(n_one, shares, strict=True)
    ]
    said = [rng.binomial(n, 1 - flips) + rng.binomial(sizes - n, flips) for n in right]
    return [n / sizes for n in said]


def _shares(captioners: Captioners, rng: np.random.Generator, n_tasks: int) -> list[Floats]:
    """Both captioners' shares of right answers; the first is better by a point after flips."""
    better = _ACCURACY + _POINTS / (1 - 2 * captioners.flips)
    alphas = np.array([(p, 1 - p) for p in (better, _ACCURACY)]) * (1 / captioners.correlation - 1)
    of_both = alphas.min(axis=0) * captioners.shared
    # Of what is hard for both, 4 parts in 7 are so in all aspects.
    every = of_both * 4 / 7
    shape = (N_VIDEOS, n_tasks, 2)
    common = rng.standard_gamma(every, size=(N_VIDEOS, 1, 2))
    common = common + rng.standard_gamma(of_both - every, size=shape)
    found = []
    for alpha in alphas:
        gammas = common + rng.standard_gamma(alpha - of_both, size=shape) + 1e-300
        found.append(gammas[..., 0] / gammas.sum(axis=-1))
    return found
