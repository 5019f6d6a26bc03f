"""Questions by the number of captioners for whom they are stable, as VidCapBench counts them."""

from __future__ import annotations

import numpy as np
import pytest

from lmms_eval_captions.metrics.agreement import consistent_times, unstable_that_pass

TABLE_8 = {5: 39_897, 4: 27_046, 3: 17_479, 2: 8_735, 1: 3_038, 0: 630}


def test_the_papers_table() -> None:
    """As many questions as Table 8 has, in any order, give its column of samples."""
    columns = [[1] * times + [0] * (5 - times) for times, n in TABLE_8.items() for _ in range(n)]
    same = np.random.default_rng(0).permuted(np.array(columns, np.int8), axis=1).T
    same = same[:, np.random.default_rng(1).permutation(same.shape[1])]
    assert consistent_times(same) == list(TABLE_8.values())


def test_what_is_unknown_for_one_captioner_is_in_no_count() -> None:
    """It is neither stable nor unstable for all of them."""
    assert consistent_times(np.array([[1, -1, 0], [1, 0, 0]], np.int8)) == [1, 0, 1]
    assert consistent_times(np.array([[-1]], np.int8)) == [0, 0]


@pytest.mark.parametrize(("n_runs", "n_captioners"), [(2, 1), (3, 1), (3, 5)])
def test_unstable_questions_pass_as_often_as_in_a_simulation(
    n_runs: int, n_captioners: int
) -> None:
    """Verdicts drawn one by one."""
    draws = np.random.default_rng(0).random((50_000, n_captioners, n_runs))
    n_flips = np.sum(draws < 0.2, axis=2)
    passes = np.mean(np.all((n_flips == 0) | (n_flips == n_runs), axis=1))
    expected = unstable_that_pass(0.2, n_runs=n_runs, n_captioners=n_captioners)
    assert passes == pytest.approx(expected, abs=0.01)
