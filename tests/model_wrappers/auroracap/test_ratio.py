"""The kept ratio of a task's captions."""

from __future__ import annotations

import pytest

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.caption_auroracap import PAPER_RATIOS, ratio_of, read_ratio

RATIOS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

FIGURE_6 = {
    "camera": (
        32.6, 39.72, 41.25, 42.36, 43.29, 43.49, 43.35, 43.5, 42.83, 43.57, 42.14, 40.44,
    ),
    "short": (
        29.94, 31.18, 31.5, 31.67, 31.88, 31.85, 32.072, 32.06, 30.266, 31.6, 31.59, 31.44,
    ),
    "background": (
        33.28, 33.48, 33.32, 33.39, 35.548, 35.92, 34.61, 34.62, 34.98, 35.77, 35.42, 35.41,
    ),
    "main_object": (
        34.43, 35.57, 37.05, 39.02, 38.51, 37.59, 36.34, 38.83, 37.58, 37.76, 36.62, 36.85,
    ),
    "detailed": (
        39.57, 39.75, 40.51, 41.3, 40.807, 41.18, 40.13, 41.16, 41.03, 40.79, 40.61, 40.24,
    ),
}  # fmt: skip
"""Accuracies by ratio that figure 6 draws (rese1f/aurora@a40096a, figure_in_paper.ipynb)."""

TABLE_7 = {
    "camera": 43.50,
    "short": 32.07,
    "background": 35.92,
    "main_object": 39.02,
    "detailed": 41.30,
}
"""AuroraCap-7B's row."""


@pytest.mark.parametrize("aspect", TABLE_7)
def test_the_paper_s_ratios_are_those_of_its_row(aspect: str) -> None:
    """At each aspect's ratio, and at no other, figure 6 has the accuracy that table 7 prints."""
    points = dict(zip(RATIOS, FIGURE_6[aspect], strict=True))
    printed = [ratio for ratio, acc in points.items() if round(acc, 2) == TABLE_7[aspect]]
    assert printed == [PAPER_RATIOS[aspect]]


@pytest.mark.parametrize(
    ("aspect", "ratio"),
    [("camera", 0.6), ("short", 0.5), ("background", 0.4), ("main_object", 0.2), ("detailed", 0.2)],
)
def test_a_task_has_its_aspect_s_ratio(aspect: str, ratio: float) -> None:
    """The ROUGE variants of VDC caption as VDC does."""
    assert ratio_of("paper", f"vdc_{aspect}") == ratio
    assert ratio_of("paper", f"vdc_rouge_{aspect}") == ratio
    assert ratio_of(0.3, f"vdc_{aspect}") == 0.3


@pytest.mark.parametrize("task", ["capquiz", "camera", "vdc_score", "vdc_rouge", "vdc_camera_2"])
def test_a_task_without_a_ratio_of_the_paper_is_refused(task: str) -> None:
    """The message says for which tasks there are ratios, and what to give for others."""
    with pytest.raises(SettingsError, match=f"vdc_rouge_detailed.*'{task}'.*ratio=0.1"):
        ratio_of("paper", task)
    assert ratio_of(0.1, task) == 0.1


@pytest.mark.parametrize("value", [1.5, -0.1, float("nan"), "half", "Paper", True, ""])
def test_what_is_no_ratio_is_refused(value: object) -> None:
    """A share, or the word ``paper``, and nothing else."""
    with pytest.raises(SettingsError, match="between 0 and 1, or 'paper'"):
        read_ratio(value)
