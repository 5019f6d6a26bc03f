"""How sure every metric of every benchmark is, against numpy's own ways to that number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import nan, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Metric
from lmms_eval_captions.lmms_eval_tasks.contributions import (
    contributions,
    contributions_by_caption,
    standard_error,
    standard_error_of_mean,
)
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.scoring import score_of
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

N_CAPTIONS: Final = 150
Array = npt.NDArray[np.float64]
Formula = Callable[[Array], Array]
"""From totals over captions, shape (..., n_columns), to the metric."""

AGREEMENTS: Final = ("positive", "negative", "unanswerable")
OUTCOMES: Final = ("true_positive", "false_positive", "false_negative")
GRADES: Final = ("correct", "partial", "neutral", "wrong")
NUMBERS: Final = (0.0, 0.4, 0.9, 1.0)

# Columns are what was counted of a caption: its verdicts label by label, in the order above; of
# numbers their mean and 1; behind it, its tokens and 1.
LABELLED: Final[dict[tuple[str, str], tuple[tuple[str, ...], Formula]]] = {
    ("vcapsbench", "ar"): (AGREEMENTS, lambda t: 100 * t[..., 0] / t[..., :3].sum(-1)),
    ("vcapsbench", "ir"): (AGREEMENTS, lambda t: 100 * t[..., 1] / t[..., :2].sum(-1)),
    ("vcapsbench", "cr"): (AGREEMENTS, lambda t: 100 * t[..., :2].sum(-1) / t[..., :3].sum(-1)),
    ("capquiz", "capp"): (OUTCOMES, lambda t: 100 * t[..., 0] / t[..., :2].sum(-1)),
    ("capquiz", "capr"): (OUTCOMES, lambda t: 100 * t[..., 0] / t[..., :3].sum(-1)),
    ("capquiz", "capf1"): (
        OUTCOMES,
        lambda t: 200 / (t[..., :2].sum(-1) / t[..., 0] + t[..., :3].sum(-1) / t[..., 0]),
    ),
    ("vidcapbench", "acc"): (GRADES, lambda t: 100 * t[..., 0] / t[..., :4].sum(-1)),
    ("vidcapbench", "pre"): (
        GRADES,
        lambda t: 100 * t[..., :2].sum(-1) / (t[..., :2].sum(-1) + t[..., 3]),
    ),
    ("vidcapbench", "cov"): (GRADES, lambda t: 100 - 100 * t[..., 2] / t[..., :4].sum(-1)),
    ("vidcapbench", "con"): (
        GRADES,
        lambda t: 1e4 * (t[..., 0] / t[..., :4].sum(-1)) / (t[..., 4] / t[..., 5]),
    ),
}
OF_MEANS: Final[dict[tuple[str, str], tuple[tuple[Any, ...], dict[Any, float]]]] = {
    ("vdc", "vdc_acc"): (("yes", "no"), {"yes": 100.0, "no": 0.0}),
    ("vdc", "vdc_score"): (NUMBERS, {number: number for number in NUMBERS}),
    ("vdc_rouge", "vdc_rouge"): (NUMBERS, {number: 100 * number for number in NUMBERS}),
    **{
        ("msvd_eval", name): (NUMBERS, {number: number for number in NUMBERS})
        for name in ("accuracy", "completeness", "conciseness", "relevance", "avg")
    },
}
CASES: Final = [*LABELLED, *OF_MEANS]


def test_every_metric_is_among_the_cases() -> None:
    """A new metric must say how sure it is, too."""
    every = {(name, metric) for name, one in all_benchmarks().items() for metric in one.metrics}
    assert every == set(CASES)


def _drawn(
    name: str, metric: str, *, seed: int, n: int = N_CAPTIONS, n_runs: int = 1, ties: float = 0.1
) -> tuple[list[CaptionRecord], Array]:
    """Captions whose questions go together, and what is counted of each, mean over judge runs."""
    rng = np.random.default_rng(seed)
    labelled = (name, metric) in LABELLED
    labels: Sequence[Any] = (LABELLED if labelled else OF_MEANS)[name, metric][0]
    n_values = all_benchmarks()[name].metrics[metric].n_values
    records, rows = [], []
    for place in range(n):
        n_questions = n_values if n_values > 1 else int(rng.integers(2, 12))
        shares = rng.dirichlet(np.full(len(labels), 1.0))
        n_tokens = int(rng.integers(40, 400))
        runs: list[list[Any]] = []
        for _ in range(n_runs):
            drawn = [labels[i] for i in rng.choice(len(labels), n_questions, p=shares)]
            runs.append([value if rng.random() > ties else None for value in drawn])
        records.append(_record(f"v{place}", metric, runs, {"n_tokens": n_tokens}))
        if labelled:
            columns = [[run.count(label) for label in labels] for run in runs]
            rows.append([*np.mean(columns, axis=0), n_tokens, 1])
        else:
            of_value = OF_MEANS[name, metric][1]
            values = [[of_value[value] for value in run if value is not None] for run in runs]
            assert n_runs == 1
            rows.append([np.mean(values[0]), 1] if values[0] else [0, 0])
    return records, np.array(rows, dtype=np.float64)


def _record(
    video: str, metric: str, runs: list[list[Any]], fields: dict[str, object]
) -> CaptionRecord:
    n_questions = sum(map(len, runs))
    n_unscored = sum(value is None for run in runs for value in run)
    return CaptionRecord(
        task="task",
        video_id=video,
        judge="judge",
        runs=len(runs),
        protocol=1,
        extras={},
        n_questions=n_questions,
        n_unscored=n_unscored,
        values={metric: runs},
        fields=fields,
    )


def _formula(name: str, metric: str) -> Formula:
    if (name, metric) in LABELLED:
        return LABELLED[name, metric][1]
    return lambda totals: totals[..., 0] / totals[..., 1]


def _delta_error(formula: Formula, rows: Array) -> float:
    """Cluster-robust error by a numerical gradient."""
    totals, n = rows.sum(0), len(rows)
    steps = np.eye(len(totals)) * 1e-4
    gradient = np.array([(formula(totals + s) - formula(totals - s)) / 2e-4 for s in steps])
    deviations = (rows - rows.mean(0)) @ gradient
    return float(sqrt(n / (n - 1) * (deviations**2).sum()))


def _bootstrap_error(formula: Formula, rows: Array, *, times: int = 4000) -> float:
    """Deviation of the metric over captions drawn anew."""
    rng = np.random.default_rng(0)
    weights = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), size=times)
    return float(np.std(formula(weights @ rows)))


@pytest.fixture(autouse=True)
def _any_share_may_be_unscored(bench: pytest.MonkeyPatch) -> None:
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")


@pytest.mark.parametrize(("name", "metric"), CASES)
def test_the_error_is_that_of_numpy_and_of_a_bootstrap(name: str, metric: str) -> None:
    """Contributions have the metric as their mean; their error is the metric's own."""
    benchmark = all_benchmarks()[name]
    records, rows = _drawn(name, metric, seed=1)
    rows = rows[rows.any(axis=1)]
    score, formula = score_of(benchmark, metric, records), _formula(name, metric)
    assert score == pytest.approx(float(formula(rows.sum(0))))
    values = contributions(benchmark, metric, records)
    error = standard_error(benchmark, metric, records)
    assert values is not None
    assert error is not None
    assert np.mean(values) == pytest.approx(score)
    assert np.std(values, ddof=1) / sqrt(len(values)) == pytest.approx(error)
    assert error == pytest.approx(_delta_error(formula, rows), rel=1e-4)
    assert error == pytest.approx(_bootstrap_error(formula, rows), rel=0.07)


@pytest.mark.parametrize(("name", "metric"), CASES)
def test_leaving_captions_out_in_turn_comes_to_the_same(name: str, metric: str) -> None:
    """A metric that does not say how it is a ratio has nearly the same contributions, slowly."""
    benchmark = all_benchmarks()[name]
    records, _ = _drawn(name, metric, seed=2)
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
    records, _ = _drawn(name, metric, seed=3, n_runs=3)
    values = contributions(benchmark, metric, records)
    assert values is not None
    assert np.mean(values) == pytest.approx(score_of(benchmark, metric, records))
    alone = [
        contributions(
            benchmark,
            metric,
            [
                replace(record, runs=1, values={metric: [record.values[metric][run]]})
                for record in records
            ],
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
    records, _ = _drawn(name, metric, seed=4, n=40)
    lost = _record("lost", metric, [[None] * benchmark.metrics[metric].n_values], {})
    error = standard_error(benchmark, metric, records)
    assert standard_error(benchmark, metric, [lost, *records]) == pytest.approx(error)
    by_caption = contributions_by_caption(benchmark, metric, [lost, *records])
    assert by_caption is not None
    assert (by_caption[0], len(by_caption)) == (None, 41)


@pytest.mark.parametrize(("name", "metric"), CASES)
def test_there_is_no_error_where_there_is_no_number(
    name: str, metric: str, bench: pytest.MonkeyPatch
) -> None:
    """None of no caption, of too much that is unscored, of captions that say nothing of it."""
    benchmark = all_benchmarks()[name]
    records, _ = _drawn(name, metric, seed=5, n=20)
    assert standard_error(benchmark, metric, []) is None
    assert standard_error(benchmark, metric, records[:1]) is None
    nothing = [_record(str(i), metric, [[None] * 4], {}) for i in range(3)]
    assert standard_error(benchmark, metric, nothing) is None
    assert contributions(benchmark, metric, nothing) is None
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0")
    from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN

    JUDGE_RUN.close()
    assert contributions(benchmark, metric, records) is None


def test_a_ratio_of_nothing_has_no_error() -> None:
    """Where no caption speaks of anything, IR has no value and no error, while CR has both."""
    benchmark = all_benchmarks()["vcapsbench"]
    silent = [_record(str(i), "ir", [["unanswerable"]], {}) for i in range(3)]
    assert standard_error(benchmark, "ir", silent) is None
    records = [replace(record, values={"cr": record.values["ir"]}) for record in silent]
    assert standard_error(benchmark, "cr", records) == 0.0


def test_con_without_tokens_has_no_error() -> None:
    """Where tokens cannot be counted, con is no number and has no error."""
    benchmark = all_benchmarks()["vidcapbench"]
    records, _ = _drawn("vidcapbench", "con", seed=6)
    uncounted = [replace(r, fields={"n_tokens": None, "con_reason": "no file"}) for r in records]
    assert standard_error(benchmark, "con", uncounted) is None


def test_captions_of_one_video_are_not_independent() -> None:
    """The same captions in two tasks are no more evidence than once; AE and HE are pooled so."""
    benchmark = all_benchmarks()["vidcapbench"]
    for metric in ("acc", "pre", "cov", "con"):
        records, _ = _drawn("vidcapbench", metric, seed=7)
        error = standard_error(benchmark, metric, records)
        assert standard_error(benchmark, metric, [*records, *records]) == pytest.approx(error)


def test_the_mean_of_tasks_has_the_error_of_its_videos() -> None:
    """Five aspects of the same videos: numpy's error of each video's mean over the aspects."""
    benchmark = all_benchmarks()["vdc"]
    drawn = [_drawn("vdc", "vdc_acc", seed=seed, ties=0.0) for seed in range(5)]
    error = standard_error_of_mean([(benchmark, "vdc_acc", records) for records, _ in drawn])
    of_videos = np.mean([rows[:, 0] for _, rows in drawn], axis=0)
    assert error == pytest.approx(np.std(of_videos, ddof=1) / sqrt(N_CAPTIONS))
    hopeless = [_record("a", "vdc_acc", [[None]], {})]
    assert (
        standard_error_of_mean(
            [(benchmark, "vdc_acc", drawn[0][0]), (benchmark, "vdc_acc", hopeless)]
        )
        is None
    )


def test_leaving_out_ends_where_it_would_take_minutes() -> None:
    """A metric of no known form, of tens of thousands of captions, has no error."""
    benchmark = all_benchmarks()["vdc"]
    metric = Metric(score=lambda _videos, _records: 1.0)
    records = [_record(str(i), "m", [["yes"]], {}) for i in range(20_000)]
    assert standard_error(_with(benchmark, "m", metric), "m", records) is None


def test_a_metric_that_falls_apart_without_a_caption_has_no_error() -> None:
    """Where one caption alone gives the metric a value, no error can be told."""
    benchmark = all_benchmarks()["vdc"]
    metric = Metric(
        score=lambda videos, _records: 1.0 if any("yes" in video for video in videos) else nan
    )
    records = [_record(str(i), "m", [["yes" if i else "no"]], {}) for i in range(2)]
    assert standard_error(_with(benchmark, "m", metric), "m", records) is None


def _with(benchmark: Benchmark[Any, Any], name: str, metric: Metric) -> Benchmark[Any, Any]:
    return replace(benchmark, metrics={**benchmark.metrics, name: metric})
