"""A short share of the campaign on scores that labels correct."""

from __future__ import annotations

import numpy as np
import pytest

from coverage_labels import NARROWER, Setting, measure


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(Setting(n_videos=643, n_questions=8), id="accuracy"),
        pytest.param(Setting(n_videos=643, n_questions=8, metric="precision"), id="precision"),
        pytest.param(Setting(n_videos=643, n_questions=8, by_video=True), id="mean over videos"),
        pytest.param(Setting(n_videos=643, n_questions=8, stratified=True), id="stratified"),
        pytest.param(
            Setting(n_videos=643, n_questions=10, by_video=True, n_tasks=5), id="mean over tasks"
        ),
    ],
)
def test_the_corrected_score_s_interval_holds_the_truth(setting: Setting) -> None:
    """In 200 simulations about 95 %, and it is narrower than that of the labels alone."""
    measured = measure(setting, n_simulations=200, rng=np.random.default_rng(0))
    assert 0.91 <= measured.cover <= 0.985
    assert measured.narrower >= NARROWER - 0.05


def test_a_lenient_judge_s_own_interval_does_not_hold_the_truth() -> None:
    """Which is why its score is corrected, and then it does."""
    setting = Setting(n_videos=300, n_questions=8, lenient=True)
    measured = measure(setting, n_simulations=100, rng=np.random.default_rng(0))
    assert measured.cover_of_judge < 0.1
    assert measured.cover >= 0.9
