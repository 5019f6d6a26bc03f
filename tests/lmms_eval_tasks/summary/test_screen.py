"""The last screen of a run: whatever happened, it fits and says what matters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.lmms_eval_tasks.summary.screen import screen_of
from lmms_eval_captions.lmms_eval_tasks.summary.signatures import signature_lines
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


def test_the_samples_to_look_at_are_of_a_task_that_was_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other people's tasks in the same run have logs, too, without a question of ours."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    for task in ("ai2d", "vdc_short"):
        (tmp_path / "out" / f"20260102_030405_samples_{task}.jsonl").touch()
    shown = " ".join(screen_of(_run(tmp_path / "out")).split())
    assert "verdict and reply: less out/20260102_030405_samples_vdc_short.jsonl" in shown


def test_the_report_is_offered_first_where_there_is_something_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With sample logs; however much there is to say, the screen stays one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "20260102_030405_samples_vdc_short.jsonl").touch()
    full = screen_of(_run(tmp_path / "out", doubts=[DOUBT.format(n=19_112)]))
    assert len(full.splitlines()) <= 40
    steps = [
        "next: lmms-eval-captions report out -o report.html",
        "see whether every score is whole: lmms-eval-captions check out",
        "see each question, verdict and reply: less out",
    ]
    places = [full.index(step) for step in steps]
    assert places == sorted(places)


def test_one_endpoint_of_stored_replies_is_named_without_a_count() -> None:
    """The number stands before it; where nothing was stored nothing is named."""
    run = _run()
    for stored, words in (
        ({"http://a/v1": 1_230}, "1,230 replies from the store (given by http://a/v1), 815"),
        ({}, "0 replies from the store, 815"),
    ):
        document = {**run.document, "judging": {**TOTALS, "from_store": stored}}
        shown = screen_of(FinishedRun(document, None, "s"))
        assert words in " ".join(shown.split())


def test_the_share_that_the_endpoint_had_in_its_cache_is_told() -> None:
    """Of the model that had any; nothing where there is none, or a document says nothing of it."""
    run = _run()
    tokens = {"a": [1_000, 10], "b": [2_000, 20]}
    for cached, words in (
        ({"a": 251}, "a 1,000 in (25.1% of it from the endpoint's cache), 10 out; b 2,000 in, 20"),
        ({}, "a 1,000 in, 10 out; b 2,000 in, 20 out"),
        (None, "a 1,000 in, 10 out; b 2,000 in, 20 out"),
    ):
        totals: dict[str, Any] = {**TOTALS, "tokens": tokens}
        if cached is not None:
            totals["cached_tokens"] = cached
        shown = screen_of(FinishedRun({**run.document, "judging": totals}, None, "s"))
        assert words in " ".join(shown.split())


def test_what_is_known_of_the_cost_is_told_beside_a_model_without_a_price() -> None:
    """A cheap judge on a server of one's own does not hide what the judge cost."""
    totals = {
        **TOTALS,
        "tokens": {"gpt-4o": [1_000, 10], "own": [2_000, 20]},
        "usd": None,
        "usd_by_model": {"gpt-4o": 41.5, "own": None},
    }
    run = _run()
    shown = screen_of(FinishedRun({**run.document, "judging": totals}, None, "s"))
    assert (
        "own 2,000 in, 20 out; $41.50 by the prices of 2025-10-01, without own, whose price is "
        "unknown (LMMS_CAPTIONS_PRICES)"
    ) in " ".join(shown.split())


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


def test_missing_and_dropped_captions_have_columns_where_there_are_any() -> None:
    """Nobody reads columns of zeros; empty captions are always counted."""
    benchmark = all_benchmarks()["capquiz"]
    task = _task("capquiz", benchmark, missing={"n": 7, "of": 1027})
    header, row = table_lines({"capquiz": task})
    assert header.split()[-3:] == ["empty", "missing", "judge"]
    assert row.split()[-3:] == ["0/1,027", "7", "gpt-4o-2024-08-06"]


def test_one_task_has_its_whole_signature() -> None:
    """Broken between fields, it is the signature again when the lines are joined."""
    benchmark = all_benchmarks()["capquiz"]
    task = _task("capquiz", benchmark)
    lines = signature_lines({"capquiz": task})
    assert "".join(line.strip() for line in lines) == f"signature: {task['signature']}"
    assert max(map(len, lines)) <= 100


def test_few_tasks_have_what_is_their_own() -> None:
    """What two tasks have in common is said once, and the rest under each one's name."""
    benchmark = all_benchmarks()["vdc"]
    tasks = {name: _task(name, benchmark) for name in ("vdc_camera", "vdc_short")}
    common, first, second = signature_lines(tasks)[-3:]
    assert "judge:gpt-4o" in signature_lines(tasks)[0]
    assert "questions:" not in common
    assert first.startswith("  vdc_camera: questions:vdc_came")
    assert second.startswith("  vdc_short: questions:vdc_shor")


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


def test_the_stand_in_of_the_shell_does_not_judge_again() -> None:
    """``LMMS_CAPTIONS_JUDGE=lexical`` may be exported: the command unsets it."""
    shown = " ".join(screen_of(_run(judge="lexical (smoke test, not a score)")).split())
    assert "LMMS_CAPTIONS_JUDGE= OPENAI_API_KEY=... lmms-eval --model caption_file" in shown


def test_programs_that_the_shell_does_not_know_are_named_by_their_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ``make demo`` nobody has activated its environment."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "lmms-eval", "lmms-eval-captions"):
        (programs / name).touch()
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("sys.executable", str(programs / "python"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    screen = screen_of(_run(tmp_path / "out"))
    assert "next: .venv/bin/lmms-eval-captions check out" in screen
    assert " .venv/bin/lmms-eval --model caption_file" in screen


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


def test_what_no_judge_saw_is_not_offered_to_another(tmp_path: Path) -> None:
    """The command that judges again names tasks with a judge alone; without one there is none."""
    run = _run(tmp_path)
    for name, task in run.document["tasks"].items():
        task["judge"] = "mine" if name == "capquiz" else "none"
    shown = _joined(run)
    assert "have the same captions judged by another judge" in shown
    assert "--tasks capquiz signature" in shown
    run.document["tasks"]["capquiz"]["judge"] = "none"
    shown = _joined(run)
    assert "judged by another judge" not in shown
    assert "see each caption and what was measured" in shown


def _joined(run: FinishedRun) -> str:
    return " ".join(screen_of(run).split())
