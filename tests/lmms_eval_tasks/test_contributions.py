"""How sure every metric of every benchmark is, against numpy's own ways to that number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan, sqrt
from typing import Any

import numpy as np
import pytest

from drawn_captions import (
    CASES,
    LABELLED,
    N_CAPTIONS,
    bootstrap_error,
    delta_error,
    drawn,
    formula_of,
    record,
)
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Metric
from lmms_eval_captions.lmms_eval_tasks.contributions import contributions_by_caption
from lmms_eval_captions.lmms_eval_tasks.intervals import measured_over
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.scoring import score_of
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks


def contributions(
    benchmark: Benchmark[Any, Any], metric: str, records: Sequence[CaptionRecord]
) -> list[float] | None:
    """Those of the captions that count."""
    of_captions = contributions_by_caption(benchmark, metric, records)
    if of_captions is None:
        return None
    return [value for value in of_captions if value is not None]


def standard_error(
    benchmark: Benchmark[Any, Any], metric: str, *sets: Sequence[CaptionRecord]
) -> float | None:
    """The error that the judging document has of a metric, or of its mean over tasks."""
    return measured_over(benchmark, metric, sets).standard_error


def test_every_metric_is_among_the_cases() -> None:
    """A new metric must say how sure it is, too."""
    every = {(name, metric) for name, one in all_benchmarks().items() for metric in one.metrics}
    assert every == set(CASES)


@pytest.fixture(autouse=True)
def _any_share_may_be_unscored(bench: pytest.MonkeyPatch) -> None:
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")


@pytest.mark.parametrize(("name", "metric"), CASES)
def test_the_error_is_that_of_numpy_and_of_a_bootstrap(name: str, metric: str) -> None:
    """Contributions have the metric as their mean; their error is the metric's own."""
    benchmark = all_benchmarks()[name]
    records, rows = drawn(name, metric, seed=1)
    rows = rows[rows.any(axis=1)]
    score, formula = score_of(benchmark, metric, records), formula_of(name, metric)
    assert score == pytest.approx(float(formula(rows.sum(0))))
    values = contributions(benchmark, metric, records)
    error = standard_error(benchmark, metric, records)
    assert values is not None
    assert error is not None
    assert np.mean(values) == pytest.approx(score)
    # Captions that add to neither sum are among the contributions, and no part of the error's n.
    assert np.std(values, ddof=1) / sqrt(len(values)) == pytest.approx(error, rel=3e-4)
    assert error == pytest.approx(delta_error(formula, rows), rel=3e-4)
    assert error == pytest.approx(bootstrap_error(formula, rows), rel=0.07)


@pytest.mark.parametrize(("name", "metric"), CASES)
def test_leaving_captions_out_in_turn_comes_to_the_same(name: str, metric: str) -> None:
    """A metric that does not say how it is a ratio has nearly the same contributions, slowly."""
    benchmark = all_benchmarks()[name]
    records, _ = drawn(name, metric, seed=2)
    plain = _with(benchmark, metric, replace(benchmark.metrics[metric], ratios=None))
    error = standard_error(benchmark, metric, records)
    assert standard_error(plain, metric, records) == pytest.approx(error, rel=0.03)
    values = contributions(plain, metric, records)
    assert values is not None
    assert np.mean(values) == pytest.approx(score_of(benchmark, metric, records))


@pytest.mark.parametrize(("name", "metric"), LABELLED)
def test_several_judge_runs_are_one_number(name: str, metric: str) -> None:
    """With three runs, contributions still have the metric, a mean over runs, as their mean."""
    benchmark = all_benchmarks()[name]
    records, _ = drawn(name, metric, seed=3, n_runs=3)
    values = contributions(benchmark, metric, records)
    assert values is not None
    assert np.mean(values) == pytest.approx(score_of(benchmark, metric, records))
    alone = [
        contributions(
            benchmark,
            metric,
            [replace(one, runs=1, values={metric: [one.values[metric][run]]}) for one in records],
        )
        for run in range(3)
    ]
    error = standard_error(benchmark, metric, records)
    means = np.mean(np.array(alone, dtype=np.float64), axis=0)
    assert error == pytest.approx(np.std(means, ddof=1) / sqrt(len(records)), rel=0.02)


@pytest.mark.parametrize(("name", "metric"), CASES)
def test_a_caption_without_a_verdict_counts_nowhere(name: str, metric: str) -> None:
    """Missing captions move neither the metric nor its error."""
    benchmark = all_benchmarks()[name]
    records, _ = drawn(name, metric, seed=4, n=40)
    unread = record("unread", metric, [[None] * benchmark.metrics[metric].n_values], {})
    unjudged = record("unjudged", metric, [], {})
    error = standard_error(benchmark, metric, records)
    every = [unread, *records, unjudged]
    assert standard_error(benchmark, metric, every) == pytest.approx(error)
    by_caption = contributions_by_caption(benchmark, metric, every)
    assert by_caption is not None
    assert (by_caption[0], by_caption[-1], len(by_caption)) == (None, None, 42)


@pytest.mark.parametrize(("name", "metric"), CASES)
def test_there_is_no_error_where_there_is_no_number(
    name: str, metric: str, bench: pytest.MonkeyPatch
) -> None:
    """None of no caption, of too much that is unscored, of captions that say nothing of it."""
    benchmark = all_benchmarks()[name]
    records, _ = drawn(name, metric, seed=5, n=20)
    assert standard_error(benchmark, metric, []) is None
    assert standard_error(benchmark, metric, records[:1]) is None
    nothing = [record(str(i), metric, [[None] * 4], {}) for i in range(3)]
    assert standard_error(benchmark, metric, nothing) is None
    assert contributions(benchmark, metric, nothing) is None
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0")
    JUDGE_RUN.close()
    assert contributions(benchmark, metric, records) is None


def test_a_ratio_of_nothing_has_no_error() -> None:
    """Where no caption speaks of anything, IR has no value and no error, while CR has both."""
    benchmark = all_benchmarks()["vcapsbench"]
    silent = [record(str(i), "ir", [["unanswerable"]], {}) for i in range(3)]
    assert standard_error(benchmark, "ir", silent) is None
    records = [replace(one, values={"cr": one.values["ir"]}) for one in silent]
    assert standard_error(benchmark, "cr", records) == 0.0


def test_con_without_tokens_has_no_error() -> None:
    """Where tokens cannot be counted, con is no number and has no error."""
    benchmark = all_benchmarks()["vidcapbench"]
    records, _ = drawn("vidcapbench", "con", seed=6)
    uncounted = [replace(r, fields={"n_tokens": None, "con_reason": "no file"}) for r in records]
    assert standard_error(benchmark, "con", uncounted) is None


def test_captions_of_one_video_are_not_independent() -> None:
    """The same captions in two tasks are no more evidence than once; AE and HE are pooled so."""
    benchmark = all_benchmarks()["vidcapbench"]
    for metric in ("acc", "pre", "cov", "con"):
        records, _ = drawn("vidcapbench", metric, seed=7)
        error = standard_error(benchmark, metric, records)
        assert standard_error(benchmark, metric, [*records, *records]) == pytest.approx(error)


def test_the_mean_of_tasks_has_the_error_of_its_videos() -> None:
    """Five aspects of the same videos: numpy's error of each video's mean over the aspects."""
    benchmark = all_benchmarks()["vdc"]
    of_aspects = [drawn("vdc", "vdc_acc", seed=seed, ties=0.0) for seed in range(5)]
    error = standard_error(benchmark, "vdc_acc", *(records for records, _ in of_aspects))
    of_videos = np.mean([rows[:, 0] for _, rows in of_aspects], axis=0)
    assert error == pytest.approx(np.std(of_videos, ddof=1) / sqrt(N_CAPTIONS))
    hopeless = [record("a", "vdc_acc", [[None]], {})]
    assert standard_error(benchmark, "vdc_acc", of_aspects[0][0], hopeless) is None


def test_leaving_out_ends_where_it_would_take_minutes() -> None:
    """A metric of no known form, of tens of thousands of captions, has no error."""
    benchmark = all_benchmarks()["vdc"]
    metric = Metric(score=lambda _videos, _records: 1.0)
    records = [record(str(i), "m", [["yes"]], {}) for i in range(20_000)]
    assert standard_error(_with(benchmark, "m", metric), "m", records) is None


def test_a_metric_that_falls_apart_without_a_caption_has_no_error() -> None:
    """Where one caption alone gives the metric a value, no error can be told."""
    benchmark = all_benchmarks()["vdc"]
    metric = Metric(
        score=lambda videos, _records: 1.0 if any("yes" in video for video in videos) else nan
    )
    records = [record(str(i), "m", [["yes" if i else "no"]], {}) for i in range(2)]
    assert standard_error(_with(benchmark, "m", metric), "m", records) is None


def _with(benchmark: Benchmark[Any, Any], name: str, metric: Metric) -> Benchmark[Any, Any]:
    return replace(benchmark, metrics={**benchmark.metrics, name: metric})
