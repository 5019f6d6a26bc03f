"""The last screen of a run: whatever happened, it fits and says what matters."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.lmms_eval_tasks.integration import plugin
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN, FinishedRun
from lmms_eval_captions.lmms_eval_tasks.results import screen
from lmms_eval_captions.lmms_eval_tasks.results.screen import screen_of, table_lines
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, task_groups

TOTALS = {
    "calls": 192_546,
    "from_store": {"https://api.openai.com/v1": 1_200, "http://127.0.0.1:1/v1": 30},
    "shared": 4,
    "retried": {"HTTP 429": 812, "time-out": 3},
    "tokens": {"gpt-4o-2024-08-06": [123_456_789, 1_234_567]},
    "cached_tokens": {},
    "usd_by_model": {"gpt-4o-2024-08-06": 321.987},
    "prices_date": "2025-10-01",
    "seconds": 7_260.4,
}
DOUBT = (
    "97% of {n} replies are the example in the prompt: the judge repeats it and does not judge. "
    "Name another judge (LMMS_CAPTIONS_JUDGE) and judge the same captions again"
)


@pytest.fixture(autouse=True)
def _programs_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell finds ``lmms-eval`` and ``lmms-eval-captions``."""
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")


def _task(name: str, benchmark: Any, **fields: Any) -> dict[str, Any]:
    metrics = {
        metric: {"value": 50.0 + place, "standard_error": 1.2, "ci_low": 47.5, "ci_high": 52.4}
        for place, metric in enumerate(benchmark.metrics)
    }
    signature = (
        f"{name}|judge:gpt-4o-2024-08-06|runs:1|protocol:1|captions:aspect|questions:{name[:8]:x<8}"
        "|served:gpt-4o-2024-08-06|unscored:3/19112|lmms-eval-captions:0.9.0"
    )
    return {
        "headline": benchmark.headline,
        "headline_means": benchmark.headline_means,
        "metrics": metrics,
        "captions": 1027,
        "unscored": {"n": 3, "of": 19_112, "reasons": {}},
        **{share: {"n": 0, "of": 1027} for share in ("empty", "missing", "dropped")},
        "judge": "gpt-4o-2024-08-06",
        "doubts": [],
        "signature": signature,
        "tasks": [],
        **fields,
    }


def _run(folder: Path | None = None, **fields: Any) -> FinishedRun:
    """All tasks and groups of ``video_captions``, with everything that can be said."""
    groups, by_task = task_groups(), {}
    for benchmark in all_benchmarks().values():
        by_task.update(dict.fromkeys(benchmark.tasks, benchmark))
    chosen = groups["video_captions"]
    tasks = {"video_captions": _task("all", by_task["capquiz"], metrics={}, tasks=list(chosen))}
    for name in ("vdc_score", "vidcapbench"):
        tasks[name] = _task(name, by_task[groups[name][0]], tasks=list(groups[name]))
    tasks |= {name: _task(name, by_task[name], **fields) for name in chosen}
    document = {
        "model": "caption_hf",
        "captions": "captions/20260102-030405-1.jsonl",
        "seconds": 9000.0,
        "tasks": tasks,
        "judging": TOTALS,
        "warnings": [],
    }
    return FinishedRun(document, folder, "20260102_030405")


def test_all_tasks_fit_on_one_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve tasks with groups, costs, files and next steps; the judge is named once."""
    monkeypatch.chdir(tmp_path)
    for folder, tasks in (("al pha", "vdc_camera"), ("beta", "capquiz"), ("aa", "dream1k")):
        (tmp_path / "out" / folder).mkdir(parents=True)
        for kind in ("results", "judging", "breakdown_vdc_camera"):
            document = json.dumps({"tasks": {tasks: {}}})
            (tmp_path / "out" / folder / f"20260102_030405_{kind}.json").write_text(document)
    (tmp_path / "out/beta/20260102_030405_samples_vdc.jsonl").touch()
    (tmp_path / "out/cut").mkdir()
    (tmp_path / "out/cut/20260102_030405_judging.json").write_text('{"tasks')
    lines = screen_of(_run(tmp_path / "out/beta"), 80).splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert text.count("gpt-4o-2024-08-06") == 2  # in the title and with its tokens
    for words in (
        "vdc_acc 50.00 [47.50, 52.40]",
        "192,546 calls, 1,230 replies from the store; 815 attempts failed (812 x HTTP 429, 3 x "
        "time-out); 7,260 s, the whole run 9,000 s",
        "123,456,789 tokens in, 1,234,567 out; $321.99 by the prices of 2025-10-01",
        "files: out/beta/20260102_030405_...: results, judging, breakdown_*",
        "next: lmms-eval-captions compare 'out/al pha' out/beta lmms-eval-captions",
        "lmms-eval-captions report 'out/al pha' out/beta -o report.html",
        "lmms-eval-captions check out/beta",
    ):
        assert words in text


def test_warnings_are_shortened_and_a_doubt_about_all_tasks_is_shown_once(tmp_path: Path) -> None:
    run = _run(tmp_path, doubts=[DOUBT.format(n=19_112)])
    warnings = [f"warning number {n} is this one" for n in range(30)]
    lines = screen_of(run, 80).splitlines()
    assert sum("doubt about vdc_camera and 11 more" in line for line in lines) == 1
    full = screen_of(FinishedRun({**run.document, "warnings": warnings}, tmp_path, "s"), 80)
    assert "warning: warning number 0" in full
    assert "more lines of warnings and doubts are in the judging file" in full
    assert len(full.splitlines()) <= 40


def test_groups_come_first_and_their_tasks_are_indented() -> None:
    lines = table_lines(_run().document["tasks"], 100)
    names = [line[: line.index("vdc") + 1] for line in lines if "vdc_camera" in line]
    assert names == ["  v"]
    assert not any(line.startswith("video_captions") for line in lines)
    assert lines[0].split() == ["task", "score", "[95%", "CI]", "others", "unscored"]
    empty = table_lines(_run(empty={"n": 2, "of": 1027}).document["tasks"], 100)
    assert empty[0].split()[-1] == "empty"


@pytest.mark.parametrize(
    ("metric", "signature", "words"),
    [
        pytest.param({"value": None}, "t|con:unavailable", "con N/A", id="no-tokenizer"),
        pytest.param({"value": None}, "t|judge:j", "con nan", id="no-score"),
        pytest.param({"value": 1.0}, "t|judge:j", "con 1.00 ", id="no-error"),
    ],
)
def test_a_metric_without_a_value_says_which_kind_it_is(
    metric: dict[str, float | None], signature: str, words: str
) -> None:
    benchmark = all_benchmarks()["vidcapbench"]
    metrics = {"con": {"standard_error": None, **metric}}
    task = _task("t", benchmark, metrics=metrics, headline="con", signature=signature)
    assert f"{words} " in table_lines({"t": task}, 80)[1] + " "


def test_captions_without_a_judge_are_measured() -> None:
    """The title names judges only: there is none called "none"."""
    judged, measured = (_run(judge=judge) for judge in ("mine", "none"))
    assert "Captions of caption_hf, measured without a judge" not in _joined(judged)
    tasks = measured.document["tasks"]
    for task in tasks.values():
        task["judge"] = "none"
    assert "Captions of caption_hf, measured without a judge" in _joined(measured)
    tasks["capquiz"]["judge"] = "mine"
    assert "Captions of caption_hf, judged by mine" in _joined(measured)


def _joined(run: FinishedRun) -> str:
    return " ".join(screen_of(run).split())


PREDICTED = FinishedRun({"predict_only": True, "tasks": {"capquiz": {}}}, Path("out"), "s")


@pytest.fixture
def ended(bench: pytest.MonkeyPatch) -> None:
    """A process with two finished runs and an error that ended two others."""
    bench.setattr(THIS_RUN, "finished", [PREDICTED, PREDICTED])
    bench.setattr(THIS_RUN, "errors", ["it ended early", "it ended early"])
    bench.delenv("RANK", raising=False)


@pytest.mark.usefixtures("ended")
def test_rank_0_prints_each_run_and_then_each_error_once(
    capfd: pytest.CaptureFixture[str], bench: pytest.MonkeyPatch
) -> None:
    plugin._print_of_process(os.getpid() + 1)  # a forked child
    bench.setenv("RANK", "1")
    plugin._print_of_process(os.getpid())
    assert capfd.readouterr() == ("", "")
    bench.setenv("RANK", "0")
    plugin._print_of_process(os.getpid())
    printed = capfd.readouterr()
    assert printed.out.count("--model_args path=out") == 2
    assert printed.err == "it ended early\n"


@pytest.mark.usefixtures("ended")
def test_a_reader_that_is_gone_is_no_error(bench: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (closed, None):
        bench.setattr(sys, "stdout", stream)
        screen.print_runs()
