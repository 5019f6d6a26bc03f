"""The last screen of a run: whatever happened, it fits and says what matters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.lmms_eval_tasks.summary.screen import screen_of
from lmms_eval_captions.lmms_eval_tasks.summary.table import table_lines
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, task_groups
from lmms_eval_captions.lmms_eval_tasks.this_run import FinishedRun

TOTALS = {
    "calls": 192_546,
    "from_store": {"https://api.openai.com/v1": 1_200, "an earlier version": 30},
    "shared": 4,
    "retried": {"HTTP 429": 812, "time-out": 3},
    "tokens": {"gpt-4o-2024-08-06": [123_456_789, 1_234_567]},
    "usd": 321.987,
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
    """40 lines of 100 columns hold 12 tasks, 2 groups, costs, paths, next steps and signatures."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    for kind in ("results", "judging", "breakdown_vdc_camera"):
        (tmp_path / "out" / f"20260102_030405_{kind}.json").touch()
    lines = screen_of(_run(tmp_path / "out")).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    text = " ".join(" ".join(lines).split())
    for words in (
        "vdc_acc 50.00 [47.50, 52.40]",
        "192,546 calls, 1,230 replies from the store (1,200 given by https://api.openai.com/v1, 30 "
        "given by an earlier version), 815 attempts failed (812 x HTTP 429, 3 x time-out), 7,260 s",
        "123,456,789 in, 1,234,567 out; $321.99 by the prices of 2025-10-01",
        "files: out/20260102_030405_... results, judging, breakdown_*",
        "next: lmms-eval-captions check out",
        "LMMS_CAPTIONS_JUDGE=... lmms-eval --model caption_file",
        "--tasks video_captions signature: judge:gpt-4o-2024-08-06|runs:1|protocol:1|",
    ):
        assert words in text


def test_doubts_and_warnings_are_there_however_full_the_screen_is(tmp_path: Path) -> None:
    """A judge that is doubted in all tasks is doubted once; what is left out is counted."""
    run = _run(tmp_path, doubts=[DOUBT.format(n=19_112)])
    warnings = [f"warning number {n} is this one" for n in range(30)]
    lines = screen_of(FinishedRun({**run.document, "warnings": []}, tmp_path, "s")).splitlines()
    assert sum("doubt about vdc_camera and 11 more" in line for line in lines) == 1
    assert len(lines) <= 40
    full = screen_of(FinishedRun({**run.document, "warnings": warnings}, tmp_path, "s"))
    assert "warning: warning number 0" in full
    assert "lines more: see warnings and doubts in the judging file" in full
    assert len(full.splitlines()) <= 40


def test_groups_stand_before_their_tasks_and_their_tasks_under_them() -> None:
    """The mean of VDC comes first, its aspects are indented, and so are VidCapBench's parts."""
    lines = table_lines(_run().document["tasks"])
    names = [line[: line.index("vdc") + 1] for line in lines if "vdc_camera" in line]
    assert names == ["  v"]
    assert not any(line.startswith("video_captions") for line in lines)
    assert lines[0].split() == [
        "task", "score", "[95%]", "others", "unscored", "empty", "judge",
    ]  # fmt: skip


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
    """What cannot be computed here is N/A, what too much is unscored of is nan."""
    benchmark = all_benchmarks()["vidcapbench"]
    metrics = {"con": {"standard_error": None, **metric}}
    task = _task("t", benchmark, metrics=metrics, headline="con", signature=signature)
    assert f"{words} " in table_lines({"t": task})[1] + " "


@pytest.mark.parametrize(
    ("signature", "shares", "words"),
    [
        pytest.param("|limit:4|offset:8", {}, "--limit 4 --offset 8", id="limit"),
        pytest.param("", {"dropped": 2}, ".jsonl,missing=drop", id="dropped"),
        pytest.param("", {"missing": 2}, ".jsonl,missing=skip", id="missing"),
        pytest.param("", {}, ".jsonl --tasks video_captions signature", id="all"),
    ],
)
def test_the_command_that_judges_again_finds_the_captions_of_this_run_alone(
    signature: str, shares: dict[str, int], words: str
) -> None:
    """Others were not written, and would be an error."""
    counts: dict[str, Any] = {share: {"n": n, "of": 1027} for share, n in shares.items()}
    task_signature = f"t|judge:gpt-4o-2024-08-06|runs:1{signature}"
    screen = screen_of(_run(signature=task_signature, **counts))
    assert words in " ".join(screen.replace("\\\n", " ").split())


def test_captions_that_no_judge_saw_are_measured() -> None:
    """The title names judges alone: there is none called "none"."""
    judged, measured = (_run(judge=judge) for judge in ("mine", "none"))
    assert "captions of caption_hf, measured without a judge" not in _joined(judged)
    tasks = measured.document["tasks"]
    for task in tasks.values():
        task["judge"] = "none"
    assert "captions of caption_hf, measured without a judge" in _joined(measured)
    tasks["capquiz"]["judge"] = "mine"
    assert "captions of caption_hf, judged by mine" in _joined(measured)


def _joined(run: FinishedRun) -> str:
    return " ".join(screen_of(run).split())
