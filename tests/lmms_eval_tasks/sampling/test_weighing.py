"""How metrics count verdicts on a sample of the questions."""

from __future__ import annotations

from math import isnan
from typing import Any

import pytest

from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import (
    Sample,
    contributions,
    counts_in,
    examples_of,
    weighed,
)
from lmms_eval_captions.lmms_eval_tasks.scoring import by_run, score_of
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

MEANS = {"vdc", "vdc_rouge", "vdc_vdd", "msvd_eval", "own_gveval", "own_rating"}
BENCHMARKS = {name: one for name, one in all_benchmarks().items() if one.measure is None}


def _record(values: list[Any], sample: Sample | None = None, video: str = "v") -> CaptionRecord:
    return CaptionRecord(
        task="vdc_camera", video_id=video, judge="j", runs=1, protocol=1, extras={},
        n_questions=len(values), n_unscored=0, values={"vdc_acc": [values]},
        sample={} if sample is None else sample.to_item(),
    )  # fmt: skip


@pytest.mark.parametrize("name", BENCHMARKS)
def test_contributions_add_up(name: str) -> None:
    """What questions add one by one is what they add together; of a mean, times their number."""
    benchmark = BENCHMARKS[name]
    metric = benchmark.metrics[benchmark.headline]
    values = [value for example in examples_of(metric) for value in example]
    alone = contributions(metric, values)
    assert metric.ratios is not None
    ((together, *_),) = metric.ratios([values], ())
    n = len(alone) if name in MEANS else 1
    assert sum(top for top, _ in alone) == pytest.approx(n * together[0])
    assert sum(bottom for _, bottom in alone) == pytest.approx(n * together[1])


def test_records_without_a_sample_are_as_they_are() -> None:
    """Nothing is copied, and numbers are those of the metric itself, to the last bit."""
    vdc = BENCHMARKS["vdc"]
    records = [_record(["yes", "no", None])]
    assert weighed(vdc, records) == (vdc, records)
    always, same = weighed(vdc, records, always=True)
    assert score_of(always, "vdc_acc", same) == pytest.approx(50.0)


def test_a_question_counts_as_much_as_it_stands_for() -> None:
    """By hand: a caption of four questions, of which one stands for three; another asked whole."""
    vdc = BENCHMARKS["vdc"]
    sample = Sample(weights=[3.0, 0.0, 0.0, 1.0], strata=[0, 0, 0, -1], rank=0)
    records = [
        _record(["yes", None, None, "no"], sample),
        _record(["no", "no"], video="w"),
    ]
    assert score_of(vdc, "vdc_acc", records) == pytest.approx(100 * (3 / 4 + 0) / 2)
    counted, same = weighed(vdc, records)
    (run,) = by_run("vdc_acc", same)
    assert counts_in([run], 1) == (4, 0)
    assert counted.metrics["vdc_acc"].labels == ()


@pytest.mark.parametrize(("n_asked", "expected"), [(60, 55.0), (10, 10.0)])
def test_of_few_questions_a_cheap_judge_tells_nothing(n_asked: int, expected: float) -> None:
    """Where fewer than fifty were asked the judge's own verdicts count, and no others."""
    vdc = BENCHMARKS["vdc"]
    n = 2 * n_asked
    # The judge says yes to a tenth, the cheap one too, but to all that were not asked.
    said = ["yes" if at % 10 == 0 else "no" for at in range(n_asked)]
    sample = Sample(
        weights=[2.0] * n_asked + [0.0] * n_asked, strata=[0] * n, rank=0, lam=1.0,
        cheap={"vdc_acc": [[*said, *["yes"] * n_asked]]},
    )  # fmt: skip
    values = [*said, *[None] * n_asked]
    assert score_of(vdc, "vdc_acc", [_record(values, sample)]) == pytest.approx(expected)


def test_a_group_of_which_nothing_was_asked_has_no_value() -> None:
    """Whatever the cheap judge says of it."""
    vdc = BENCHMARKS["vdc"]
    sample = Sample(
        weights=[0.0, 0.0], strata=[0, 0], rank=0, lam=1.0, cheap={"vdc_acc": [["yes", "yes"]]}
    )
    counted, (record,) = weighed(vdc, [_record([None, None], sample)])
    (run,) = by_run("vdc_acc", [record])
    assert isnan(counted.metrics["vdc_acc"].score(run, [record]))
