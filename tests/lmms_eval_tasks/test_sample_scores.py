"""Standard errors and ``--baseline`` through lmms-eval's own functions, against scipy and numpy."""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan, nan, sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from drawn_captions import CASES, drawn
from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks import baseline, plugin
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, PendingRecord
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.sample_scores import note_documents, score_samples
from lmms_eval_captions.lmms_eval_tasks.scoring import score_of
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN
from lmms_eval_captions.model_wrappers.caption_files.records import open_captions
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
    bench.setattr(THIS_RUN, "documents", {})
    bench.setattr(THIS_RUN, "warnings", [])


def _output(task: str, metrics: Mapping[str, Sequence[Any]], samples: list[Sample]) -> TaskOutput:
    """What lmms-eval aggregates of a task."""
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
    """What lmms-eval logs of each document."""
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


@pytest.mark.parametrize(("name", "task"), TASKS)
def test_what_came_from_other_ranks_is_scored_as_well(name: str, task: str) -> None:
    """Ranks hand on copies: the samples' items are not the ones that were aggregated."""
    items = _judged(name, task, CAPTIONS[:2])
    by_metric = {metric: [item[metric] for item in items] for metric in items[0]}
    gathered = pickle.loads(pickle.dumps(_samples(items, CAPTIONS[:2])))  # noqa: S301
    _output(task, by_metric, gathered)
    benchmark = all_benchmarks()[name]
    for metric in benchmark.metrics:
        expected = [item.get("score") for item in by_metric[metric]]
        assert [sample[metric].get("score") for sample in gathered] == pytest.approx(expected)
    assert [100 * sample["score"] for sample in gathered] == pytest.approx(
        [item["score"] for item in by_metric[benchmark.headline]]
    )


@pytest.mark.parametrize(("name", "task"), TASKS)
def test_where_the_metric_is_nan_there_is_neither_error_nor_score(
    name: str, task: str, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No number of a task that has no score can be taken for one, here or as a baseline."""
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0")
    JUDGE_RUN.close()
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


def test_a_log_without_scores_still_names_its_videos(
    bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its lines have no target, which a baseline would be scored by; the items have the video."""
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0")
    JUDGE_RUN.close()
    items = _judged("vdc", "vdc_short", CAPTIONS)
    _output(
        "vdc_short",
        {m: [item[m] for item in items] for m in items[0]},
        samples := _samples(items, CAPTIONS),
    )
    captions = open_captions(_written(samples, "vdc_short", tmp_path))("vdc_short")
    assert [sample["target"] for sample in samples] == [""] * len(CAPTIONS)
    assert captions.find("sample_01") == CAPTIONS[0]
    assert captions.find("sample_02") == CAPTIONS[1]


def _system(name: str, metric: str, records: Sequence[CaptionRecord]) -> list[Sample]:
    """What lmms-eval logs of a run whose captions got these verdicts."""
    benchmark = _with_one_metric(name, metric)
    field = benchmark.metrics[metric].field
    items = [
        {
            metric: {**record.head(), field: record.values[metric], **record.fields},
            "unscored": record.head(),
        }
        for record in records
    ]
    samples = _samples(items, ["A caption."] * len(items))
    score_samples(benchmark, samples)
    return samples


def _with_one_metric(name: str, metric: str) -> Benchmark[Any, Any]:
    benchmark = all_benchmarks()[name]
    return replace(benchmark, metrics={metric: benchmark.metrics[metric]}, headline=metric)


def _compared(now: list[Sample], then: list[Sample], folder: Path) -> dict[str, Any]:
    """What lmms-eval makes of two runs, by its own functions; percentages as it prints them."""
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
    before, _ = drawn(name, metric, seed=1, n=100, ties=0.0)
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


@pytest.mark.parametrize(("name", "metric"), CASES)
def test_equal_runs_differ_by_nothing(name: str, metric: str, tmp_path: Path) -> None:
    """The same captions and verdicts have a difference of 0 and a P of 1, not of 0."""
    records, _ = drawn(name, metric, seed=2)
    samples = _system(name, metric, records)
    comparison = _compared(json.loads(json.dumps(samples)), samples, tmp_path)
    assert (comparison["mean_diff"], comparison["p_value"]) == (0.0, 1.0)


def test_differences_by_chance_are_called_significant_one_time_in_twenty() -> None:
    """Pairs of equally good captioners: P below 0.05 in 1.5% to 10% of 200 comparisons."""
    false = 0
    for seed in range(200):
        drawings = (drawn("vcapsbench", "ir", seed=2 * seed + i, n=60)[0] for i in range(2))
        shares = [[s.get("score") for s in _system("vcapsbench", "ir", r)] for r in drawings]
        pairs = [pair for pair in zip(*shares, strict=True) if None not in pair]
        false += bool(stats.ttest_rel(*zip(*pairs, strict=True)).pvalue < 0.05)
    assert 3 <= false <= 20


def _log(folder: Path, task: str, *, stamp: str = "a", scored: bool = True) -> Path:
    """A sample log of a VDC task as this version writes it, or one without scores."""
    records, _ = drawn("vdc", "vdc_acc", seed=1, n=4)
    samples = _system("vdc", "vdc_acc", [replace(record, task=task) for record in records])
    for sample in [] if scored else samples:
        sample.pop("score")
    return _written(samples, task, folder, stamp=stamp)


def test_a_baseline_of_another_task_is_refused(tmp_path: Path) -> None:
    """One file is read for all tasks of a run: the aspects of VDC are not compared crosswise."""
    path = _log(tmp_path, "vdc_short")
    assert len(lmms_eval_baselines.load_baseline(str(path), "vdc_short")[0]) == 4
    with pytest.raises(CaptionError, match=r"expected a sample log of vdc_camera .* 'vdc_short'"):
        lmms_eval_baselines.load_baseline(str(path), "vdc_camera")


def test_a_folder_is_the_baseline_of_each_of_its_tasks(tmp_path: Path) -> None:
    """The newest log of the task in it is taken, and a task that is not there is named."""
    old, new = (_log(tmp_path, "vdc_short", stamp=stamp) for stamp in ("2026a", "2026b"))
    _log(tmp_path, "vdc_camera")
    assert baseline.baseline_log(tmp_path, "vdc_short") == new != old
    assert len(lmms_eval_baselines.load_baseline(str(tmp_path), "vdc_camera")[0]) == 4
    with pytest.raises(CaptionError, match="expected a sample log of capquiz to compare with"):
        lmms_eval_baselines.load_baseline(str(tmp_path), "capquiz")
    assert lmms_eval_baselines.load_baseline(str(tmp_path), "vdc_score") == ({}, None)


def test_a_log_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    """Where no line has a score, lmms-eval would take 0 for every caption."""
    path = _log(tmp_path, "vdc_short", scored=False)
    plain_loader = inspect.unwrap(lmms_eval_baselines.load_baseline)
    assert set(plain_loader(str(path), "vdc_short")[0].values()) == {0.0}
    with pytest.raises(CaptionError, match="stored verdicts cost nothing") as error:
        lmms_eval_baselines.load_baseline(str(path), "vdc_short")
    assert f"--model caption_file --model_args path={path}" in str(error.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"judge": "another"}, "(judge 'judge', now 'another')"),
        ({"extras": {"prompts": "0a1b"}}, "(prompts 'none', now '0a1b')"),
        ({"questions": "0a1b"}, "(other questions about 1 of 1 videos)"),
        ({"extras": {"judge-fp": "0a1b2c3d"}}, None),
    ],
    ids=["same", "judge", "prompts", "questions", "verified since"],
)
def test_a_baseline_that_was_judged_otherwise_is_called_out(
    changes: dict[str, Any], words: str | None, tmp_path: Path, logged: list[str]
) -> None:
    """The difference is then not the captions' alone, and said to be, in the summary, too."""
    path = _log(tmp_path, "vdc_short")
    records, _ = drawn("vdc", "vdc_acc", seed=1, n=1)
    _judge_now([replace(records[0], task="vdc_short", **changes)])
    lmms_eval_baselines.load_baseline(str(path), "vdc_short")
    said = [line for line in THIS_RUN.warnings if "was judged otherwise than this run" in line]
    assert len(said) == (words is not None)
    assert all(str(words) in line for line in said)
    assert sum("was judged otherwise" in line for line in logged) == len(said)


def test_a_baseline_of_other_data_is_refused(tmp_path: Path) -> None:
    """lmms-eval pairs by a document's number: that of the sample is another one in all of VDC."""
    path = _log(tmp_path, "vdc_short")
    records, _ = drawn("vdc", "vdc_acc", seed=1, n=3)
    _judge_now([replace(record, task="vdc_short") for record in records[1:]])
    with pytest.raises(CaptionError, match=r"document 0 is video 'v0' there and 'v1' here"):
        lmms_eval_baselines.load_baseline(str(path), "vdc_short")


def _judge_now(records: Sequence[CaptionRecord]) -> None:
    """Have these scored in this run."""
    samples = _system("vdc", "vdc_acc", records)
    note_documents("vdc_short", _with_one_metric("vdc", "vdc_acc"), samples)


def test_other_tasks_baselines_are_lmms_evals_own(tmp_path: Path) -> None:
    """What is not ours is read as ever."""
    path = tmp_path / "log.jsonl"
    path.write_text('{"doc_id": 0, "target": "A", "filtered_resps": ["A"]}\n')
    assert lmms_eval_baselines.load_baseline(str(path), "mmlu") == ({0: 1.0}, None)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # lmms-eval leaves its file open
def test_the_table_shows_a_difference_of_the_headline_alone(tmp_path: Path) -> None:
    """It subtracts the baseline's headline from each number: others are shown without."""
    paired = {
        "paired_baseline": "then",
        "paired_baseline_score": 40.0,
        "paired_ci_lower": -1.0,
        "paired_ci_upper": 3.0,
        "paired_pvalue": 0.4,
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
    assert "2.25" in rows["vdc_score"]
    for name in ("vdc_score", "unscored"):
        assert rows[name].split("|")[-4].strip() == "N/A"
