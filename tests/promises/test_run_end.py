"""Files, results and summary at the end of a run, for every benchmark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isnan
from pathlib import Path
from typing import Any

import pytest
from lmms_eval.utils import make_table

from conftest import ServerFactory
from ended_runs import STAMP, Tracker, judge, results_of, shown
from five_tasks import TASKS, Task, Texts, write_data
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.results import results_writer
from lmms_eval_captions.lmms_eval_tasks.results.intervals import Measured
from lmms_eval_captions.lmms_eval_tasks.results.screen import screen_of

VIDEOS = [Texts(f"clip{number}") for number in range(4)]
CAPTIONS = ("There is a dog there.", "A cat.", "", "What is there? A dog.")

pytestmark = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


@pytest.fixture(autouse=True)
def offline(bench: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Official files with four videos, judged by the stand-in, without a tokenizer."""
    bench.setenv("LMMS_CAPTIONS_DATA", str(write_data(tmp_path / "data", VIDEOS)))
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.5")
    bench.setenv("LMMS_CAPTIONS_T5", str(tmp_path / "no-tokenizer"))


def _results(task: Task) -> dict[str, Any]:
    return results_of({task.name: judge(task.name, CAPTIONS, task.documents())})


def _numbers(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """Each number without its filter; what is no number is ``None``."""
    return {
        name.partition(",")[0]: None if value is None or isnan(value) else value
        for name, value in metrics.items()
        if "," in name and "_stderr" not in name and not isinstance(value, str)
    }


def test_the_judging_document_has_what_lmms_eval_has_and_how_sure_it_is(
    task: Task, tmp_path: Path
) -> None:
    """Every metric's number, with an error where it has one; counts, judge, run and files."""
    tracker, results = Tracker(tmp_path), _results(task)
    numbers = _numbers(results["results"][task.name])
    saved = tracker.save(results)
    document = tracker.read("judging")
    entry = document["tasks"][task.name]
    del numbers["unscored"]
    assert {name: metric["value"] for name, metric in entry["metrics"].items()} == numbers
    assert entry["metrics"][entry["headline"]]["standard_error"] is not None
    assert entry["headline_means"]
    assert (entry["captions"], entry["empty"]) == (4, {"n": 1, "of": 4})
    assert entry["judge"] == "lexical (smoke test, not a score)"
    assert entry["signature"].startswith(f"{task.name}|judge:lexical")
    assert (tracker.folder / entry["breakdown"]).is_file() if tracker.folder else False
    assert (document["model"], document["model_args"]) == ("a-model", "path=c.jsonl")
    assert Path(document["captions"]).is_file()
    assert document["started"] <= document["finished"]
    assert document["judging"]["calls"] == 0
    ours = saved["lmms_eval_captions"]
    assert ours["judging"] == f"{STAMP}_judging.json"
    assert ours["tasks"][task.name]["signature"] == entry["signature"]


def test_lmms_evals_table_holds_numbers_alone(task: Task, tmp_path: Path) -> None:
    """No signature widens it, nothing is nan for want of a tokenizer, and the judge is named."""
    results = _results(task)
    saved = Tracker(tmp_path).save(results)
    table = make_table(results)
    assert not [word for word in ("signature", "breakdown", "nan") if word in table]
    assert max(map(len, table.splitlines())) <= 110
    assert ("N/A" in table.split("con ")[-1]) or task.name != "vidcapbench_ae"
    judged_by = saved["configs"][task.name]["metadata"]["judge"]
    runs = task.hooks.benchmark.judge_defaults["runs"]
    assert (judged_by["model"], judged_by["runs"]) == ("lexical", runs)


def test_the_summary_fits_on_a_screen(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Score with its interval, costs, files and next steps, in 80 columns."""
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    Tracker(tmp_path).save(_results(task))
    (run,) = THIS_RUN.finished
    screen = screen_of(run, 80)
    lines = [line for line in screen.splitlines() if str(tmp_path) not in line]
    assert max(map(len, lines)) <= 80
    assert len(screen.splitlines()) <= 24
    headline = task.hooks.benchmark.headline
    measured = Measured.read(run.document["tasks"][task.name]["metrics"][headline])
    assert f"{headline} {measured.value:.2f} [{measured.low:.2f}, {measured.high:.2f}]" in screen
    for text in (
        task.name,
        "0 calls",
        str(tmp_path / "m" / STAMP),
        "results, judging, breakdown_*",
        "lmms-eval-captions check",
        f"{headline}: ",
    ):
        assert text in screen
    assert "nan" not in screen


def test_a_defect_of_ours_costs_lmms_evals_results_nothing(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    """They are saved, with our words out of the metrics, and the log says what is not there."""

    def fail(*_args: object, **_words: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(results_writer, "judging_document", fail)
    results = _results(task)
    before = _numbers(results["results"][task.name])
    saved = Tracker(tmp_path).save(results)
    assert _numbers(saved["results"][task.name]) == before
    assert saved["lmms_eval_captions"]["judging"] is None
    assert not THIS_RUN.finished
    assert not THIS_RUN.tasks
    assert any("ZeroDivisionError('a defect')" in line for line in logged)


def test_other_peoples_runs_are_left_alone(task: Task, tmp_path: Path) -> None:
    """A run without a task of ours is saved as it is, and nothing is shown of it."""
    theirs = results_of({"mme": shown("mme", {"signature": "theirs", "acc": 1.0})})
    copy = json.loads(json.dumps(theirs))
    saved = Tracker(tmp_path).save(theirs)
    assert {name: saved[name] for name in copy} == copy
    assert "lmms_eval_captions" not in saved
    assert not THIS_RUN.finished
    assert [path.name for path in (tmp_path / "m").iterdir()] == [f"{STAMP}_results.json"]
    assert task.name not in saved["results"]


def test_what_no_judge_scored_says_why_and_what_helps(
    task: Task, tmp_path: Path, bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """An unreadable judge gives nan and its reason; configs name it, and files are written."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "a-judge")
    bench.setenv(
        "LMMS_CAPTIONS_JUDGE_URL", serve(faults=("nonsense",), fault_rate=1.0, max_faults=9999).url
    )
    saved = Tracker(tmp_path).save(_results(task))
    (run,) = THIS_RUN.finished
    screen = screen_of(run)
    assert f"{task.hooks.benchmark.headline} nan" in screen
    assert "unscored: Why: " in screen
    assert "LMMS_CAPTIONS_ASK_AGAIN=1" in screen.replace("\n", " ")
    assert saved["lmms_eval_captions"]["tasks"][task.name]["breakdown"] == "none: not scored"
    assert saved["configs"][task.name]["metadata"]["judge"]["model"] == "a-judge"
    assert run.document["judging"]["calls"] > 0
