"""Standard errors and ``--baseline`` through lmms-eval's own functions, against scipy and numpy."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan, nan, sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from drawn_captions import CASES, drawn
from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.integration import plugin
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, PendingRecord, arrived
from lmms_eval_captions.lmms_eval_tasks.results.sample_scores import score_samples
from lmms_eval_captions.lmms_eval_tasks.results.scoring import score_of
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.model_wrappers.no_caption import NoCaption

plugin.manifests()

from lmms_eval import baselines as lmms_eval_baselines  # noqa: E402 - joined before it is loaded
from lmms_eval.evaluator_utils import TaskOutput, compute_baseline_comparison  # noqa: E402
from lmms_eval.loggers.evaluation_tracker import EvaluationTracker  # noqa: E402
from lmms_eval.utils import make_table  # noqa: E402

TASKS = [(name, task) for name, record in all_benchmarks().items() for task in record.tasks]
Sample = dict[str, Any]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in sample, rendered once."""
    return sample_root(tmp_path_factory.mktemp("sample"))


@pytest.fixture(autouse=True)
def _offline(bench: pytest.MonkeyPatch, sample: Path) -> None:
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample))
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.9")
    bench.setattr(THIS_RUN, "tasks", {})
    bench.setattr(THIS_RUN, "scored", {})
    bench.setattr(THIS_RUN, "warnings", [])


def _output(task: str, metrics: Mapping[str, Sequence[Any]], samples: list[Sample]) -> TaskOutput:
    hooks = hooks_of(all_benchmarks()[next(n for n, t in TASKS if t == task)])
    hook_of = {name: hooks.aggregate(name) for name in hooks.benchmark.metrics}
    hook_of["unscored"] = hooks.aggregate_unscored
    fake = SimpleNamespace(aggregation=lambda: hook_of, args=None)
    output = TaskOutput(task=fake, task_name=task, task_config={})
    output.logged_samples = samples
    for name in hook_of:
        output.sample_metrics[name, "none"] = list(metrics[name])
    output.calculate_aggregate_metric(bootstrap_iters=0)
    output.calculate_clt_aggregate_metric()
    return output


def _judged(name: str, task: str, captions: Sequence[str]) -> list[dict[str, PendingRecord]]:
    benchmark = all_benchmarks()[name]
    docs = benchmark.read(data_settings(), benchmark.tasks[task])
    return [
        hooks_of(benchmark).process_results(doc, [caption])
        for doc, caption in zip(docs, captions, strict=False)
    ]


def _samples(items: Sequence[Mapping[str, Any]], captions: Sequence[str]) -> list[Sample]:
    return [
        {
            "doc_id": place,
            "doc": {},
            "target": "a video",
            "arguments": ["Describe the video.", {}],
            "resps": [[caption]],
            "filtered_resps": [caption],
            "token_counts": [None],
            "doc_hash": "0",
            **item,
        }
        for place, (item, caption) in enumerate(zip(items, captions, strict=True))
    ]


def _written(samples: list[Sample], task: str, folder: Path, *, stamp: str = "a") -> Path:
    """Let lmms-eval write a sample log."""
    tracker = EvaluationTracker(output_path=str(folder))
    tracker.general_config_tracker.model_name_sanitized = "model"
    tracker.date_id = stamp
    tracker.save_results_samples(task, samples)
    return folder / "model" / f"{stamp}_samples_{task}.jsonl"


CAPTIONS = (
    "A red circle moves to the right on a plain background.",
    "A blue square.",
    NoCaption("the clip is broken"),
    "It is a video of two shapes, and the camera is still; the light is even.",
)


@pytest.mark.parametrize(("name", "task"), TASKS)
def test_every_task_has_errors_in_its_own_unit_and_a_score_on_every_line(
    name: str, task: str, tmp_path: Path
) -> None:
    """Stderr_CLT is that of numbers whose mean is the metric; a line's score is a hundredth."""
    benchmark = all_benchmarks()[name]
    items = _judged(name, task, CAPTIONS)
    samples = _samples(items, CAPTIONS)
    by_metric = {metric: [item[metric] for item in items] for metric in items[0]}
    output = _output(task, by_metric, samples)
    for metric in benchmark.metrics:
        scores = [float(str(item["score"])) for item in by_metric[metric] if "score" in item]
        value = output.agg_metrics[f"{metric},none"]
        error = output.agg_metrics[f"{metric}_stderr_clt,none"]
        if np.isnan(value):
            assert (metric in ("con", "capp", "ir", "pre"), scores, error) == (True, [], "N/A")
            continue
        assert len(scores) == 3, "the missing caption has none"
        assert np.mean(scores) == pytest.approx(value)
        assert error == pytest.approx(np.std(scores, ddof=1) / sqrt(3))
    assert output.agg_metrics["unscored_stderr_clt,none"] == "N/A"
    loaded, _ = lmms_eval_baselines.load_baseline(str(_written(samples, task, tmp_path)), task)
    headline = [item.get("score", nan) for item in by_metric[benchmark.headline]]
    values = [float(str(value)) for value in headline]
    shares = {place: value / 100 for place, value in enumerate(values) if not isnan(value)}
    assert loaded == pytest.approx(shares)
    assert THIS_RUN.warnings == [], "judged in one way"
    for sample in samples:
        sample[benchmark.headline]["judge"] = "another"
    lmms_eval_baselines.load_baseline(str(_written(samples, task, tmp_path)), task)
    assert not shares or "judged otherwise than this run (other judge)" in THIS_RUN.warnings[0]


@pytest.mark.parametrize(("name", "task"), TASKS)
def test_where_the_metric_is_nan_there_is_neither_error_nor_score(
    name: str, task: str, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No number of a task that has no score can be taken for one, here or as a baseline."""
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0")
    SESSION.close()
    items = _judged(name, task, CAPTIONS)
    samples = _samples(items, CAPTIONS)
    by_metric = {metric: [item[metric] for item in items] for metric in items[0]}
    output = _output(task, by_metric, samples)
    for metric in all_benchmarks()[name].metrics:
        assert np.isnan(output.agg_metrics[f"{metric},none"])
        assert output.agg_metrics[f"{metric}_stderr_clt,none"] == "N/A"
    assert not any("score" in sample for sample in samples)
    path = _written(samples, task, tmp_path)
    with pytest.raises(CaptionError, match="expected a sample log with a score for each caption"):
        lmms_eval_baselines.load_baseline(str(path), task)
    plain_loader = inspect.unwrap(lmms_eval_baselines.load_baseline)
    assert plain_loader(str(path), task) == ({}, None), "no 0 where lmms-eval finds no score"


def _system(name: str, metric: str, records: Sequence[CaptionRecord]) -> list[Sample]:
    benchmark = _with_one_metric(name, metric)
    items = [
        {metric: arrived(record, record.head()), "unscored": record.head()} for record in records
    ]
    samples = _samples(items, ["A caption."] * len(items))
    score_samples(benchmark, samples)
    return samples


def _with_one_metric(name: str, metric: str) -> Benchmark[Any, Any]:
    benchmark = all_benchmarks()[name]
    return benchmark.variant(metrics={metric: benchmark.metrics[metric]}, headline=metric)


def _compared(now: list[Sample], then: list[Sample], folder: Path) -> dict[str, Any]:
    path = _written(then, "task", folder)
    scores, _ = inspect.unwrap(lmms_eval_baselines.load_baseline)(str(path), "task")
    pairs = [(s["score"], scores[s["doc_id"]]) for s in now if s["doc_id"] in scores]
    comparison: dict[str, Any] = compute_baseline_comparison(
        [pair[0] for pair in pairs], [pair[1] for pair in pairs], "then"
    )
    return comparison


def _worse(records: Sequence[CaptionRecord], metric: str, *, by: float) -> list[CaptionRecord]:
    """The same captions with some of their verdicts drawn anew."""
    rng = np.random.default_rng(0)
    labels = sorted({v for r in records for v in r.values[metric][0] if v is not None}, key=str)
    return [
        replace(
            record,
            values={metric: [[v if rng.random() > by else labels[0] for v in values]]},
        )
        for record in records
        for values in [record.values[metric][0]]
    ]


@pytest.mark.parametrize(("name", "metric"), CASES)
def test_a_true_difference_has_the_interval_of_a_paired_bootstrap(
    name: str, metric: str, tmp_path: Path
) -> None:
    """Difference and interval are in the metric's unit, those of captions drawn anew in pairs."""
    benchmark = all_benchmarks()[name]
    before = drawn(name, metric, seed=1, n=100, ties=0.0)
    after = _worse(before, metric, by=0.3)
    comparison = _compared(_system(name, metric, after), _system(name, metric, before), tmp_path)
    scores = [score_of(benchmark, metric, records) for records in (after, before)]
    assert 100 * comparison["mean_diff"] == pytest.approx(scores[0] - scores[1])
    assert 100 * comparison["baseline_mean"] == pytest.approx(scores[1])
    low, high = _bootstrap_interval(benchmark, metric, after, before)
    half = (high - low) / 2
    assert 100 * comparison["ci_lower"] == pytest.approx(low, abs=0.35 * half)
    assert 100 * comparison["ci_upper"] == pytest.approx(high, abs=0.35 * half)
    assert (comparison["p_value"] < 0.05) == (low > 0 or high < 0)


def _bootstrap_interval(
    benchmark: Benchmark[Any, Any],
    metric: str,
    after: Sequence[CaptionRecord],
    before: Sequence[CaptionRecord],
) -> tuple[float, float]:
    """Pairs of captions drawn anew, the metric itself computed of each draw."""
    rng = np.random.default_rng(0)
    score = benchmark.metrics[metric].score
    differences = []
    for _ in range(200):
        places = rng.integers(0, len(after), len(after))
        # A video that is drawn twice is two videos.
        one, other = (
            [replace(side[place], video_id=str(i)) for i, place in enumerate(places)]
            for side in (after, before)
        )
        differences.append(
            score([r.values[metric][0] for r in one], one)
            - score([r.values[metric][0] for r in other], other)
        )
    low, high = np.percentile(differences, [2.5, 97.5])
    return float(low), float(high)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # lmms-eval leaves its file open
def test_the_table_shows_a_difference_of_the_headline_alone(tmp_path: Path) -> None:
    """The others have no difference, no p-value and no star."""
    paired = {
        "paired_baseline": "then",
        "paired_baseline_score": 40.0,
        "paired_ci_lower": -1.0,
        "paired_ci_upper": 3.0,
        "paired_pvalue": 0.004,
    }
    numbers = {"vdc_acc,none": 41.0, "vdc_score,none": 2.25, "unscored,none": 0}
    results: dict[str, Any] = {
        "results": {"vdc_short": {"alias": "vdc_short", **numbers, **paired}},
        "configs": {},
        "n-shot": {},
    }
    tracker = EvaluationTracker(output_path=str(tmp_path))
    tracker.general_config_tracker.model_name_sanitized = "model"
    tracker.save_results_aggregated(results=results, samples={}, datetime_str="2026")
    (path,) = tmp_path.rglob("*_results.json")
    saved = json.loads(path.read_text())["results"]["vdc_short"]
    assert {name: saved[name] for name in numbers} == numbers
    assert saved["paired_baseline"] == "then (vdc_acc)"
    rows = {line.split("|")[4].strip(): line for line in make_table(results).splitlines()}
    assert "+1.0%" in rows["vdc_acc"]
    assert "0.0040*" in rows["vdc_acc"]
    assert "2.25" in rows["vdc_score"]
    for name in ("vdc_score", "unscored"):
        assert [cell.strip() for cell in rows[name].split("|")[-5:-1]] == ["N/A"] * 4
