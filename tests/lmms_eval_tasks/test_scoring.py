"""From records to numbers: a metric without a value costs no run its results."""

from __future__ import annotations

from dataclasses import replace
from math import isnan, nan

from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.scoring import mean_over_runs

RECORD = CaptionRecord(
    task="t",
    video_id="v",
    judge="j",
    runs=3,
    protocol=1,
    extras={},
    n_questions=3,
    n_unscored=0,
)


def test_a_metric_without_a_value_is_nan_and_raises_nothing(logged: list[str]) -> None:
    """Precision has no value where no question was answered; several runs of that are nan."""
    assert isnan(mean_over_runs("pre", [RECORD], lambda: [nan, nan, nan]))
    assert isnan(mean_over_runs("pre", [RECORD], lambda: [1.0, nan, 2.0]))
    assert mean_over_runs("pre", [RECORD], lambda: [1.0, 2.0, 3.0]) == 2.0
    assert any("pre has no value" in line for line in logged)


def test_captions_without_a_question_are_told(logged: list[str]) -> None:
    """No share of nothing is too large: where all captions have no fact, that is the reason."""
    nothing = replace(RECORD, n_questions=0)
    assert isnan(mean_over_runs("pre", [nothing, nothing], lambda: [1.0]))
    assert isnan(mean_over_runs("rec", [nothing, nothing], lambda: [1.0]))
    assert logged == [
        "ERROR t pre is nan, and so are its other metrics: there is no question about any of the 2 "
        "captions\n"
    ]
