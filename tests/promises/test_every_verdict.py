"""What was judged is kept for every task of every benchmark, and gives the numbers again."""

from __future__ import annotations

import json
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from ended_runs import STAMP, Tracker, judge, results_of
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.results_folder import read_results
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, benchmark_of_task
from lmms_eval_captions.lmms_eval_tasks.verdicts.parts import parts_of
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdict_file import verdict_path
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdicts import Verdicts, read_verdicts
from lmms_eval_captions.metrics.interval import interval

TASKS = [task for benchmark in all_benchmarks().values() for task in benchmark.tasks]
CAPTIONS = ("A red circle moves to the right.", "A blue square.", "", "Two green things turn.")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in sample, rendered once."""
    return sample_root(tmp_path_factory.mktemp("sample"))


@pytest.fixture(autouse=True)
def offline(bench: pytest.MonkeyPatch, sample: Path) -> None:
    """The sample's data and the offline judge, in two runs."""
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample))
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "2")
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")


def _saved(task: str, tmp_path: Path) -> tuple[Tracker, dict[str, Any]]:
    benchmark = benchmark_of_task(task)
    docs = benchmark.read(data_settings(), benchmark.tasks[task])
    tracker = Tracker(tmp_path)
    return tracker, tracker.save(results_of({task: judge(task, CAPTIONS, docs)}))


def _read(task: str, tmp_path: Path) -> Verdicts:
    (run,) = read_results(tmp_path)
    return read_verdicts(run, task)


def _value(verdicts: Verdicts, metric: str, group: tuple[str, str] | None = None) -> float:
    known, parts = verdicts.benchmark.metrics[metric], parts_of(verdicts, metric, group)
    if parts is None:
        return float("nan")
    return interval(parts.parts, scale=known.scale, bounds=known.bounds).value


@pytest.mark.parametrize("task", TASKS)
def test_the_verdicts_give_every_number_of_results_and_breakdown(task: str, tmp_path: Path) -> None:
    """Each metric over all questions and over each group, and what was asked of which caption."""
    tracker, saved = _saved(task, tmp_path)
    verdicts, breakdown = _read(task, tmp_path), tracker.read(f"breakdown_{task}")
    for metric in verdicts.benchmark.metrics:
        printed = saved["results"][task][f"{metric},none"]
        expected = pytest.approx(printed, nan_ok=True) if isinstance(printed, float) else None
        value = _value(verdicts, metric)
        assert value == expected if expected is not None else isnan(value)
    for section in ("overall", *verdicts.benchmark.sections):
        for name, figures in breakdown[section].items():
            group = None if section == "overall" else (section, name)
            for metric in verdicts.benchmark.metrics:
                value = _value(verdicts, metric, group)
                assert (None if isnan(value) else pytest.approx(value)) == figures[metric]
    for caption, text in zip(verdicts.tasks[0].captions, CAPTIONS, strict=False):
        assert caption.n_words == len(text.split())
        of_run = caption.values[verdicts.benchmark.headline][0]
        n_values = verdicts.benchmark.metrics[verdicts.benchmark.headline].n_values
        assert len(caption.asked) * n_values == len(of_run)
    digests = {caption.caption_digest for caption in verdicts.tasks[0].captions}
    assert len(digests) == len(verdicts.tasks[0].captions)


@pytest.mark.parametrize("task", TASKS)
def test_a_sample_log_of_an_older_version_gives_the_same_verdicts(
    task: str, tmp_path: Path
) -> None:
    """Such a run wrote no verdicts, and its items do not say what was asked."""
    benchmark = benchmark_of_task(task)
    tracker, _ = _saved(task, tmp_path)
    new = _read(task, tmp_path)
    assert tracker.folder is not None
    verdict_path(tracker.folder, STAMP, task).unlink()
    with pytest.raises(DataError, match="sample log of task"):
        _read(task, tmp_path)
    added = ("asked", "n_words", "caption_digest")
    lines = []
    for caption in new.tasks[0].captions:
        item = caption.kept(benchmark.metrics)
        judgements = [{"run": 0, "question": text} for text in caption.asked]
        old = {name: value for name, value in item.items() if name not in added}
        headline = {"judgements": [*judgements, {"run": 1, "question": "again"}]}
        lines.append(json.dumps({"breakdown": old, benchmark.headline: headline}))
    log = tracker.folder / f"{STAMP}_samples_{task}.jsonl"
    log.write_text("\n".join(lines))
    old_one = _read(task, tmp_path)
    for metric in benchmark.metrics:
        assert _value(old_one, metric) == pytest.approx(_value(new, metric), nan_ok=True)
    asked = [list(caption.asked) for caption in old_one.tasks[0].captions]
    assert asked == [list(caption.asked) for caption in new.tasks[0].captions]
