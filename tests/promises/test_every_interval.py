"""Every number of every task and group has one interval, wherever it is shown."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lmms_eval.utils import make_table
from scipy import stats

from ended_runs import Tracker, results_of, shown
from lmms_eval_captions.lmms_eval_tasks import intervals
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.breakdown import break_down, report
from lmms_eval_captions.lmms_eval_tasks.breakdown_table import table_of
from lmms_eval_captions.lmms_eval_tasks.commands.check import Limits, check_folder
from lmms_eval_captions.lmms_eval_tasks.intervals import measured_over
from lmms_eval_captions.lmms_eval_tasks.measured import Measured
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results_folder import TaskResults, read_results
from lmms_eval_captions.lmms_eval_tasks.scoring import score_of, signature_of
from lmms_eval_captions.lmms_eval_tasks.summary.screen import screen_of
from lmms_eval_captions.lmms_eval_tasks.task_names import (
    all_benchmarks,
    our_benchmarks,
    task_groups,
)
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN, FinishedTask
from lmms_eval_captions.lmms_eval_tasks.verdicts.parts import parts_of
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdicts import names_with_verdicts, read_verdicts
from lmms_eval_captions.metrics.interval import interval
from planted_runs import VERDICTS, PlantedCaption, Question, record_of


def _members(name: str) -> list[str]:
    return list(task_groups().get(name, [name]))


def _benchmark(name: str) -> Benchmark[Any, Any]:
    return our_benchmarks()[_members(name)[0]]


NAMES = [
    *our_benchmarks(),
    *(
        group
        for group, tasks in task_groups().items()
        if len({id(our_benchmarks()[task]) for task in tasks}) == 1
    ),
]
N_VIDEOS, N_QUESTIONS, N_RUNS = 24, 5, 3


@pytest.fixture(autouse=True)
def _nothing_is_left_of_other_runs(bench: pytest.MonkeyPatch) -> None:
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.5")


def _records(
    task: str,
    *,
    n_videos: int = N_VIDEOS,
    n_runs: int = N_RUNS,
    seed: int = 0,
    are_alike: bool = False,
) -> list[CaptionRecord]:
    """Captions whose videos are more or less hard, judged several times, not always alike."""
    benchmark = our_benchmarks()[task]
    verdicts = next(VERDICTS[key] for key, one in all_benchmarks().items() if one is benchmark)
    rng = np.random.default_rng(seed)
    # One rating of the whole caption, or several questions in two groups of each section.
    n_questions = N_QUESTIONS if benchmark.sections else 1
    records = []
    for video, ease in enumerate(rng.beta(2, 2, n_videos)):
        truth = rng.random(n_questions) < ease
        runs: list[list[object]] = []
        for _ in range(n_runs):
            right = are_alike | truth ^ (rng.random(n_questions) < 0.1)
            wrong = rng.integers(1, len(verdicts), n_questions)
            places = np.where(right, 0, wrong)
            runs.append([verdicts[place] for place in places])
        questions = [
            Question(f"question {place}", dict.fromkeys(benchmark.sections, "ab"[place % 2]))
            for place in range(n_questions)
        ]
        text = "A dog runs." + " Away." * (0 if are_alike else video % 7)
        records.append(record_of(task, PlantedCaption(f"v{video}", questions, runs, text)))
    return records


@dataclass
class Run:
    """A run over a task or the tasks of a group, whose files are saved."""

    name: str
    folder: Path
    tracker: Tracker
    results: dict[str, Any]
    """As lmms-eval has them once they are saved."""
    saved: dict[str, Any]
    records: Mapping[str, Sequence[CaptionRecord]]
    """Of each task, and of a pooled group."""

    @property
    def task(self) -> TaskResults:
        """What is read back of it."""
        (run,) = read_results(self.folder)
        return run.tasks[self.name]

    @property
    def screen(self) -> str:
        """What it shows last."""
        return screen_of(THIS_RUN.finished[-1])


def _run(name: str, folder: Path, **planted: Any) -> Run:
    benchmark, members = _benchmark(name), _members(name)
    records = {
        task: _records(task, **{"seed": seed, **planted}) for seed, task in enumerate(members)
    }
    is_pooled = benchmark.pooled_group == name
    if is_pooled:
        records[name] = [replace(one, task=name) for task in members for one in records[task]]
    tables: dict[str, dict[str, Any]] = {}
    for task, captions in records.items():
        scores = {metric: score_of(benchmark, metric, captions) for metric in benchmark.metrics}
        words = {"signature": signature_of(captions), "breakdown": ""}
        tables[task] = shown(task, {**scores, "unscored": 0, **words})
        report(FinishedTask(benchmark, captions, Namespace()))
    if name not in tables:
        means = {
            metric: float(np.mean([tables[task][f"{metric},none"] for task in members]))
            for metric in benchmark.metrics
        }
        signature = {"signature": signature_of(records[members[0]])}
        tables[name] = shown(name, {**means, "unscored": 0, **signature})
    groups = {name: members} if name != members[0] else {}
    tracker = Tracker(folder)
    results = results_of(tables, groups)
    return Run(name, folder, tracker, results, tracker.save(results), records)


def _ends(figures: Mapping[str, Any], metric: str, suffix: str = "") -> tuple[Any, Any]:
    return tuple(figures.get(f"{metric}_ci_{end}{suffix}") for end in ("low", "high"))  # type: ignore[return-value]


@pytest.mark.parametrize("name", NAMES)
def test_a_number_has_one_interval_wherever_it_stands(name: str, tmp_path: Path) -> None:
    """Judging document, results, breakdown, last screen, ``check`` and the verdicts agree."""
    run, benchmark = _run(name, tmp_path), _benchmark(name)
    entry = run.tracker.read("judging")["tasks"][name]
    measured = run.task.measured
    assert list(entry["metrics"]) == list(benchmark.metrics)
    (saved,) = read_results(tmp_path)
    verdicts = read_verdicts(saved, name)
    for metric, known in benchmark.metrics.items():
        figures = entry["metrics"][metric]
        low, high = figures["ci_low"], figures["ci_high"]
        assert known.lowest <= low < figures["value"] < high <= known.highest
        assert figures["value"] == run.saved["results"][name][f"{metric},none"]
        assert figures["standard_error"] > 0
        assert figures["std"] >= 0
        assert 0 < figures["judge_share"] < 1
        assert _ends(run.saved["results"][name], metric, ",none") == (low, high)
        assert (measured[metric].low, measured[metric].high) == (low, high)
        parts = parts_of(verdicts, metric)
        assert parts is not None
        found = interval(parts.parts, scale=known.scale, bounds=known.bounds)
        assert (found.low, found.high) == pytest.approx((low, high))
        assert found.standard_error == pytest.approx(figures["standard_error"])
        if name in run.records:
            overall = run.tracker.read(f"breakdown_{name}")["overall"]["all"]
            assert _ends(overall, metric) == (low, high)
            for figure in ("std", "judge_share"):
                assert overall[f"{metric}_{figure}"] == pytest.approx(figures[figure])
    headline = f"{benchmark.headline} {measured[benchmark.headline]}"
    assert headline.endswith("]")
    lines = [line for line in run.screen.splitlines() if headline in line]
    assert [line.split()[0] for line in lines][:1] == [name]
    assert measured[benchmark.headline].judge_part in lines[0]
    said = check_folder(tmp_path, Limits(0.5)).lines
    assert any(f"ok       {name}: {headline}" in line for line in said)
    assert any("of the interval's variance is the judge's" in line for line in said)


@pytest.mark.parametrize("name", NAMES)
def test_every_group_of_a_breakdown_has_an_interval_of_its_own(name: str, tmp_path: Path) -> None:
    """That of its verdicts alone; a group that is a mean of tasks has no breakdown."""
    run, benchmark = _run(name, tmp_path), _benchmark(name)
    (saved,) = read_results(tmp_path)
    for task in run.records:
        breakdown, verdicts = run.tracker.read(f"breakdown_{task}"), read_verdicts(saved, task)
        for section in benchmark.sections:
            for group, figures in breakdown[section].items():
                for metric, known in benchmark.metrics.items():
                    parts = parts_of(verdicts, metric, (section, group))
                    assert parts is not None
                    found = interval(parts.parts, scale=known.scale, bounds=known.bounds)
                    assert _ends(figures, metric) == pytest.approx((found.low, found.high))
                    assert figures[metric] == pytest.approx(found.value)
    assert all(task in names_with_verdicts(saved) for task in run.records)


@pytest.mark.parametrize("name", NAMES)
def test_no_reader_takes_an_end_for_a_metric(name: str, tmp_path: Path) -> None:
    """Not ours, and not lmms-eval's tables, which it prints and hands to loggers after the save."""
    run, benchmark = _run(name, tmp_path), _benchmark(name)
    assert set(run.task.scores) == {*benchmark.metrics, "unscored"}
    for table in ("results", "groups"):
        for metrics in run.results[table].values():
            assert not any("_ci_" in key for key in metrics)
    assert "_ci_" not in make_table(run.results)
    assert not any("ci_low" in line for line in run.screen.splitlines())
    is_group = name != _members(name)[0]
    assert ("_ci_low" in str(run.saved["groups"])) == is_group


@pytest.mark.parametrize(
    ("planted", "why"),
    [
        pytest.param({"n_videos": 1}, "no interval: fewer than 2 videos count", id="one-video"),
        pytest.param(
            {"n_videos": 12, "are_alike": True}, "no interval: all 12 videos are alike", id="alike"
        ),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_where_there_is_no_interval_it_is_said_why(
    name: str, planted: dict[str, Any], why: str, tmp_path: Path
) -> None:
    """One video, or videos that are all alike, give a number and no false interval."""
    run, headline = _run(name, tmp_path, n_runs=1, **planted), _benchmark(name).headline
    figures = run.tracker.read("judging")["tasks"][name]["metrics"][headline]
    assert _ends({f"x_{key}": figure for key, figure in figures.items()}, "x") == (None, None)
    assert figures["ci_note"] == why
    assert not any("_ci_" in key for key in run.saved["results"][name])
    assert "[" not in str(run.task.measured[headline])
    assert why in run.screen
    assert any(why in line for line in check_folder(run.folder, Limits(0.5)).lines)
    if name in run.records:
        overall = run.tracker.read(f"breakdown_{name}")["overall"]["all"]
        assert _ends(overall, headline) == (None, None)
        assert overall[f"{headline}_ci_note"] == why


def test_a_few_videos_give_a_guess_that_is_called_one(tmp_path: Path) -> None:
    """Its ends are shown, marked in the table, and what they are worth stands beside them."""
    run = _run("vdc_camera", tmp_path, n_videos=5)
    breakdown = run.tracker.read("breakdown_vdc_camera")
    assert breakdown["overall"]["all"]["vdc_acc_ci_note"] == "only 5 videos: a rough guess"
    assert "only 5 videos: a rough guess: vdc_camera" in run.screen
    lines = table_of({"overall": breakdown["overall"]}).splitlines()
    assert lines[1].split()[3].endswith("]*")
    assert lines[-1] == "[low, high]: 95% interval over videos; *: of few videos, a rough guess"


def test_a_mean_of_tasks_is_as_sure_as_its_videos(tmp_path: Path) -> None:
    """``vdc_score``: near scipy's t interval of what each video has on average over the tasks."""
    run = _run("vdc_score", tmp_path, n_videos=80, n_runs=1)
    of_videos: dict[str, list[float]] = {}
    for captions in run.records.values():
        for caption in captions:
            share = caption.values["vdc_acc"][0].count("yes") / N_QUESTIONS
            of_videos.setdefault(caption.video_id, []).append(100 * share)
    means = np.array([np.mean(shares) for shares in of_videos.values()])
    error = float(stats.sem(means))
    low, high = stats.t.interval(0.95, len(means) - 1, loc=means.mean(), scale=error)
    found = run.task.measured["vdc_acc"]
    assert found.value == pytest.approx(means.mean())
    assert found.standard_error == pytest.approx(error)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.3 * error)


def test_a_mean_that_weighs_its_tasks_has_no_interval_of_another_mean(tmp_path: Path) -> None:
    """A group of the user's own may weigh by captions: another mean's interval is not its own."""
    run = _run("vdc_score", tmp_path)
    results = run.results
    results["results"]["vdc_score"] |= {
        "vdc_acc,none": 12.0,
        "signature,none": "judge:j|runs:3",
        "breakdown,none": "",
    }
    for seed, task in enumerate(_members("vdc_score")):
        report(FinishedTask(_benchmark(task), _records(task, seed=seed), None))
    tracker = Tracker(tmp_path / "again")
    tracker.save(results)
    figures = tracker.read("judging")["tasks"]["vdc_score"]["metrics"]["vdc_acc"]
    assert (figures["value"], figures["ci_low"]) == (12.0, None)
    assert figures["ci_note"] == "no interval: the number is no plain mean of the tasks' numbers"


def test_a_metric_of_no_known_form_has_nearly_the_same_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is found by leaving captions out, overall and in groups, unless that takes too long."""
    known, records = our_benchmarks()["capquiz"], _records("capquiz", n_runs=1)
    metrics = {name: replace(metric, ratios=None) for name, metric in known.metrics.items()}
    unknown = replace(known, metrics=metrics)
    plain, other = (break_down(benchmark, records, records) for benchmark in (known, unknown))
    for section in ("overall", "types"):
        for name, figures in other[section].items():
            ends = _ends(plain[section][name], "capf1")
            assert _ends(figures, "capf1") == pytest.approx(ends, abs=3)
    found = measured_over(unknown, "capf1", [records])
    assert _ends(other["overall"]["all"], "capf1") == (found.low, found.high)
    monkeypatch.setattr(intervals, "_MOST_READS", 0)
    overall = break_down(unknown, records, records)["overall"]["all"]
    assert _ends(overall, "capf1") == (found.low, found.high)


def test_an_earlier_version_s_standard_error_is_shown_as_an_interval() -> None:
    """It wrote no ends: 1.96 standard errors on each side, as it showed them."""
    old = Measured.read({"value": 57.3, "standard_error": 1.2})
    assert str(old) == "57.30 [54.95, 59.65]"
    assert str(Measured.read({"value": 57.3, "standard_error": 0.0})) == "57.30"
