"""Metrics of a sample of the questions, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Sample
from lmms_eval_captions.lmms_eval_tasks.results.breakdown import break_down
from lmms_eval_captions.lmms_eval_tasks.results.scoring import score_of
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import weighted
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import VDC


def _record(values: list[Any], sample: Sample | None = None, video: str = "v") -> CaptionRecord:
    half = len(values) // 2
    return CaptionRecord(
        task="vdc_camera", video_id=video, judge="j", runs=1, protocol=1, extras={},
        n_questions=len(values), n_unscored=0,
        values={"vdc_acc": [values], "vdc_score": [[None] * len(values)]},
        groups={"halves": [["first"] * half + ["last"] * (len(values) - half)]},
        sample=sample,
    )  # fmt: skip


def test_a_question_counts_as_much_as_it_stands_for() -> None:
    """A caption of four questions, of which one stands for three; another is asked in full."""
    records = [
        _record(["yes", None, None, "no"], Sample(weights=[3.0, 0.0, 0.0, 1.0])),
        _record(["no", "no"], video="w"),
    ]
    assert score_of(VDC, "vdc_acc", records) == pytest.approx(100 * (3 / 4 + 0) / 2)
    benchmark, (weighted_records,) = weighted(VDC, [records])
    breakdown = break_down(benchmark, weighted_records)
    assert breakdown["overall"]["all"]["n_questions"] == 4
    assert breakdown["halves"]["last"]["vdc_acc"] == 0.0
    assert breakdown["halves"]["first"]["vdc_acc"] == pytest.approx(100 * (3 / 2) / (3 / 2 + 1))


@pytest.mark.parametrize(("n_asked", "expected"), [(60, 55.0), (10, 10.0)])
def test_of_few_questions_a_cheap_judge_tells_nothing(n_asked: int, expected: float) -> None:
    """With fewer than fifty questions asked, the judge's own verdicts alone count."""
    # Both judges say yes to a tenth; the cheap one says yes to all that were not asked.
    verdicts = ["yes" if at % 10 == 0 else "no" for at in range(n_asked)]
    sample = Sample(
        weights=[2.0] * n_asked + [0.0] * n_asked,
        lam=1.0,
        cheap={"vdc_acc": [[*verdicts, *["yes"] * n_asked]]},
    )
    record = _record([*verdicts, *[None] * n_asked], sample)
    assert score_of(VDC, "vdc_acc", [record]) == pytest.approx(expected)


def test_a_group_of_which_nothing_was_asked_has_no_value() -> None:
    """Whatever the cheap judge says of it."""
    cheap: dict[str, Any] = {"vdc_acc": [["yes", "yes"]]}
    sample = Sample(weights=[0.0, 0.0], lam=1.0, cheap=cheap)
    benchmark, (records,) = weighted(VDC, [[_record([None, None], sample)]])
    assert break_down(benchmark, records)["overall"]["all"]["vdc_acc"] is None
