"""Metrics of sums over captions as means of what captions add."""

from __future__ import annotations

import numpy as np
import pytest

from drawn_captions import COUNTED
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.metrics.interval import interval

N_CAPTIONS = 60
N_SAMPLES = 200


@pytest.mark.parametrize(("name", "metric"), COUNTED)
def test_intervals_of_metrics_of_sums_hold_the_truth(name: str, metric: str) -> None:
    """Of 200 samples of 60 captions some 95 in 100; 91 to 99 are within chance."""
    known, (row_of, formula) = all_benchmarks()[name].metrics[metric], COUNTED[name, metric]
    assert known.ratios is not None
    rng = np.random.default_rng(1)
    pool = np.array([row_of(rng) for _ in range(20_000)], dtype=np.float64)
    truth = float(formula(pool.sum(0)))
    n_hits = 0
    for _ in range(N_SAMPLES):
        rows = pool[rng.integers(0, len(pool), N_CAPTIONS)].tolist()
        parts = np.array(known.ratios([[row] for row in rows], []))[None, :, None]
        found = interval(parts, scale=known.scale, bounds=known.bounds)
        assert found.low is not None
        assert found.high is not None
        n_hits += found.low <= truth <= found.high
    assert 0.91 <= n_hits / N_SAMPLES <= 0.99
