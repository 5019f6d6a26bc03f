"""The noise floor is where differences of equal captioners end, by simulation and by arithmetic."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from numpy.typing import NDArray

from lmms_eval_captions.metrics.judge_runs import judge_runs
from lmms_eval_captions.metrics.noise_floor import noise_floor

N_VIDEOS, N_QUESTIONS = 60, 12


def _chances(generator: np.random.Generator) -> NDArray[np.float64]:
    """How often a question gets the verdict that counts: most always or never, some in between."""
    settled = generator.integers(0, 2, (N_VIDEOS, N_QUESTIONS)).astype(float)
    moves = generator.random((N_VIDEOS, N_QUESTIONS)) < 0.3
    return np.where(moves, generator.random((N_VIDEOS, N_QUESTIONS)), settled)


def _right(
    generator: np.random.Generator, chances: NDArray[np.float64], n_runs: int
) -> NDArray[np.float64]:
    """Questions that count, shape (n_runs, n_videos)."""
    draws = generator.random((n_runs, N_VIDEOS, N_QUESTIONS))
    right: NDArray[np.float64] = (draws < chances).sum(axis=-1).astype(float)
    return right


def _parts(right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the share of all questions that count."""
    sides = np.stack([right, np.full_like(right, N_QUESTIONS)], axis=-1)
    return sides[:, :, None, None, :]


@pytest.mark.parametrize("n_runs", [1, 3, 5])
def test_equal_captioners_differ_by_less_in_95_of_100_cases(n_runs: int) -> None:
    """The floor is from three runs of each; the differences are of other runs."""
    generator = np.random.default_rng(n_runs)
    below = []
    for _ in range(1_500):
        a, b = _chances(generator), _chances(generator)
        planned = [_parts(_right(generator, chances, 3)) for chances in (a, b)]
        floor = noise_floor(planned, scale=100.0, n_runs=n_runs)
        scores = [
            100 * _right(generator, chances, n_runs).mean() / N_QUESTIONS - 100 * chances.mean()
            for chances in (a, b)
        ]
        below.append(abs(scores[0] - scores[1]) < floor)
    assert 0.935 < np.mean(below) < 0.965


def test_it_is_the_binomial_deviation_of_a_known_judge() -> None:
    """1.96 times the root of twice the sum of p (1 - p) over the squared number of questions.

    It is 2 % above: the variance itself is an estimate, from 60 videos.
    """
    generator = np.random.default_rng(0)
    chances = _chances(generator)
    floors = [
        noise_floor([_parts(_right(generator, chances, 3))], scale=100.0, n_runs=3)
        for _ in range(200)
    ]
    variance = (chances * (1 - chances)).sum() / chances.size**2
    assert np.median(floors) == pytest.approx(100 * 1.96 * np.sqrt(2 * variance / 3), rel=0.03)


def test_more_runs_shrink_it_by_their_root() -> None:
    """Four times the runs, half the noise; captioners' variances are averaged."""
    generator = np.random.default_rng(1)
    a, b = (_parts(_right(generator, _chances(generator), 3)) for _ in range(2))
    floor = {n: noise_floor([a, b], scale=100.0, n_runs=n) for n in (1, 4)}
    assert floor[1] == pytest.approx(2 * floor[4])
    of_each = [judge_runs(parts, scale=100.0).standard_error or 0.0 for parts in (a, b)]
    mean = np.mean([3 * error**2 for error in of_each])
    assert floor[1] == pytest.approx(1.97 * np.sqrt(2 * mean), rel=0.01)


def test_a_judge_that_never_moves_has_none() -> None:
    """Equal runs give 0, one run cannot tell, and a still captioner halves the variance."""
    generator = np.random.default_rng(2)
    moves = _parts(_right(generator, _chances(generator), 3))
    still = np.repeat(moves[:1], 3, axis=0)
    assert noise_floor([still], scale=100.0, n_runs=1) == 0
    assert isnan(noise_floor([moves, moves[:1]], scale=100.0, n_runs=1))
    both, alone = (noise_floor(of, scale=1.0, n_runs=1) for of in ([moves, still], [moves]))
    assert both == pytest.approx(alone / np.sqrt(2), rel=1e-6)
