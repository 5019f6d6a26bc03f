"""Runs that were ended, have no score or lost files: a page all the same, which says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import compress
from pathlib import Path
from typing import Any

import pytest

from label_runs import judged_run
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from planted_runs import PlantedCaption, Question, record_of, write_run
from report_pages import TASKS, Open, html_of, page_of, parsed

CAPTIONS = ("A red circle moves to the right.", "A blue square.", "")

pytestmark = pytest.mark.usefixtures("offline")


def _delete(pattern: str) -> Callable[[Path], None]:
    def delete(results: Path) -> None:
        for path in results.parent.glob(pattern):
            path.unlink()

    return delete


def _cut(pattern: str) -> Callable[[Path], None]:
    def cut(results: Path) -> None:
        for path in results.parent.glob(pattern):
            data = path.read_bytes()
            path.write_bytes(data[: len(data) * 2 // 3])

    return cut


def _without_score(results: Path) -> None:
    """What a run writes of which too much is unscored."""
    document = json.loads(results.read_text("utf-8"))
    for metrics in document["results"].values():
        metrics.update(dict.fromkeys(metrics, float("nan")))
    for ours in document["lmms_eval_captions"]["tasks"].values():
        ours["breakdown"] = "none: there is no score"
    results.write_text(json.dumps(document), encoding="utf-8")
    _delete("*_breakdown_*")(results)


def _predicted(results: Path) -> None:
    """What ``--predict_only`` leaves."""
    document = json.loads(results.read_text("utf-8"))
    document["results"] = {task: {"bypass,none": 999} for task in document["results"]}
    del document["lmms_eval_captions"]
    results.write_text(json.dumps(document), encoding="utf-8")
    _delete("*_verdicts_*")(results)


WAYS: dict[str, tuple[Callable[[Path], None], str, bool]] = {
    "no sample logs": (_delete("*_samples_*"), "Run it again with --log_samples", True),
    "a cut sample log": (_cut("*_samples_*"), "is it cut off?", True),
    "no verdicts": (_delete("*_verdicts_*"), "", True),
    "neither": (
        lambda path: (_delete("*_verdicts_*")(path), _delete("*_samples_*")(path))[0],
        "--log_samples",
        False,
    ),
    "cut verdicts": (_cut("*_verdicts_*"), "delete it, then the run's sample log is read", False),
    "no breakdown": (_delete("*_breakdown_*"), "expected the breakdown", True),
    "a cut breakdown": (_cut("*_breakdown_*"), "is it cut off?", True),
    "no judging document": (_delete("*_judging.json"), "", True),
    "no score": (_without_score, "there is no score (nan)", True),
    "captions alone": (_predicted, "was it --predict_only", False),
    "cut results": (_cut("*_results.json"), "is it cut off?", False),
    "a run that was ended": (_delete("*"), "no *_results.json here or below", False),
}
"""What is done to a run: how, what the page says of it, and whether its verdicts are shown."""


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_not_there_is_said(way: str, task: str, tmp_path: Path) -> None:
    """A page of what is there, in which what is missing stands, and how to get it."""
    change, words, has_rows = WAYS[way]
    change(judged_run(tmp_path / "run", {task: CAPTIONS}))
    page = page_of(tmp_path / "run")
    assert words in " ".join(page.text.split())
    rows = list(page.questions()) if "core" in page.scripts else []
    assert bool(rows) == has_rows
    for _, _, captions, questions in rows:
        has_texts = way not in ("no sample logs",)
        assert way == "a cut sample log" or has_texts == (captions[0] is not None)
        assert all(any(verdict is not None for verdict in q.verdicts[0]) for q in questions)
        asked = [question.question for question in questions]
        assert all(asked) or task.startswith("msvd_eval")


@pytest.mark.parametrize(
    ("usd_by_model", "words"),
    [
        pytest.param({"paid": 41.5, "own": None}, "$41.50 and more", id="one-is-known"),
        pytest.param({"own": None}, "price unknown", id="none-is-known"),
        pytest.param(None, "price unknown", id="earlier-version"),
    ],
)
def test_a_cost_that_is_known_in_part_is_said_to_be(
    usd_by_model: dict[str, float | None] | None, words: str, tmp_path: Path
) -> None:
    """A cheap judge without a price does not hide what the judge cost."""
    results = judged_run(tmp_path / "run", {"vdc_short": CAPTIONS})
    (path,) = results.parent.glob("*_judging.json")
    document = json.loads(path.read_text("utf-8"))
    document["judging"] |= {"usd": None, "usd_by_model": usd_by_model}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert words in " ".join(page_of(tmp_path / "run").text.split())


@pytest.mark.parametrize("task", TASKS)
def test_one_captioner_may_have_less(task: str, tmp_path: Path) -> None:
    """A task or videos that only one has: shown, with nothing for the other."""
    judged_run(tmp_path / "all", {task: CAPTIONS, "vdc_short": CAPTIONS})
    judged_run(tmp_path / "some", {task: CAPTIONS[:1]})
    page = page_of(tmp_path / "all", tmp_path / "some")
    core = page.core
    of_task = [core["tasks"][place]["name"] == task for place in core["rows"]["task"]]
    states = list(compress(core["rows"]["state"][1], of_task))
    assert states == [0, 3, 3]
    for name, video, captions, questions in page.questions():
        has_other = name == task and video == core["rows"]["video"][0]
        assert (captions[1] is not None) == has_other
        assert all(any(q.verdicts[1]) == has_other for q in questions if task != "vdc_short")


def test_a_page_without_any_run_still_opens(tmp_path: Path, opened: Open) -> None:
    """What is missing stands in it, and nothing goes wrong."""
    (tmp_path / "run").mkdir()
    page = opened(html_of(tmp_path / "run"))
    assert "no *_results.json here or below" in page.inner_text("#head")
    assert not page.locator("#view").is_visible()


def test_a_group_of_an_earlier_run_keeps_its_own_rows(tmp_path: Path) -> None:
    """One of its tasks was run again: the group shows the run that its numbers are of."""
    older = {task: [_planted(task, "no")] for task in ("vdc_camera", "vdc_short")}
    write_run(tmp_path, older, groups={"vdc_score": list(older)})
    for path in (tmp_path / "m").iterdir():
        path.rename(path.with_name(path.name.replace("20260102", "20260101")))
    results = next((tmp_path / "m").glob("*_results.json"))
    results.write_text(results.read_text("utf-8").replace("20260102", "20260101"), "utf-8")
    write_run(tmp_path, {"vdc_camera": [_planted("vdc_camera", "yes")]})
    core = page_of(tmp_path).core
    values = {}
    for view in core["views"]:
        rows = [r for r, task in enumerate(core["rows"]["task"]) if task in view["tasks"]]
        values[view["name"]] = [core["rows"]["values"]["vdc_acc"][0][r] for r in rows]
    assert values == {"vdc_score": [0.0, 0.0], "vdc_camera": [100.0], "vdc_short": [0.0]}


def _planted(task: str, verdict: str) -> Any:
    asked = [Question("What?", {"aspects": "a"})]
    return record_of(task, PlantedCaption("v.mp4", asked, [[verdict]]))


def test_other_judges_are_not_compared(tmp_path: Path, offline: pytest.MonkeyPatch) -> None:
    """Captioners that were judged in other ways: both are shown, and no difference."""
    judged_run(tmp_path / "a", {"vidcapbench_ae": CAPTIONS})
    offline.setenv("LMMS_CAPTIONS_VIDCAPBENCH_FORMAT", "vript")
    data_settings.cache_clear()
    judged_run(tmp_path / "b", {"vidcapbench_ae": CAPTIONS})
    page = page_of(tmp_path / "a", tmp_path / "b")
    assert "Not compared. vidcapbench_ae: format is free in a, vript in b" in page.text
    assert page.core["views"][0]["pairs"][0]["rows"] == []


def test_mistakes_are_said_in_a_sentence(tmp_path: Path, capsys: Any) -> None:
    """A folder that is not there, one that is named twice, a task that none has, no place."""
    judged_run(tmp_path / "run", {"vdc_camera": CAPTIONS})
    with pytest.raises(DataError, match="there is no such folder"):
        html_of(tmp_path / "nowhere")
    with pytest.raises(DataError, match="is named twice"):
        html_of(tmp_path / "run", tmp_path / "run")
    with pytest.raises(SettingsError, match="expected any of vdc_camera, got 'capquiz'"):
        html_of(tmp_path / "run", tasks=("capquiz",))
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="expected a folder, or a run's"):
        html_of(tmp_path / "file")
    run, file, page = (str(tmp_path / name) for name in ("run", "file", "page.html"))
    for words, said in (
        (["-o", f"{file}/page.html"], "--output"),
        (["-o", ""], "expected the name of a file"),
        (["-o", str(tmp_path)], "expected the name of a file"),
        (["-o", page, "--videos", f"{file}s"], "there is no such folder"),
        (["-o", page, "--figures", file], "expected a folder"),
    ):
        assert main(["report", run, *words]) == 2
        assert said in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["report", str(tmp_path / "empty"), "-o", page]) == 1


def test_the_command_writes_the_page(tmp_path: Path, capsys: Any) -> None:
    """With frames of the worst videos, and a line for what is not in it."""
    judged_run(tmp_path / "run", {"vdc_camera": CAPTIONS, "capquiz": CAPTIONS})
    output = tmp_path / "new" / "report.html"
    words = ["report", str(tmp_path / "run"), "-o", str(output), "--tasks", "vdc_camera"]
    assert main([*words, "--frames", "2", "--framed", "1"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("Frames of 1 of 3 videos are in the page: only the 1")
    assert printed[-1].startswith(f"{output} (")
    page = parsed(output.read_text("utf-8"))
    assert [view["name"] for view in page.core["views"]] == ["vdc_camera"]
    frames = json.loads(page.scripts["frames"])
    assert [len(pictures) for pictures in frames.values()] == [2]
    worst = min(range(3), key=lambda place: page.core["rows"]["values"]["vdc_acc"][0][place])
    assert page.core["rows"]["frames"][worst] in frames
    assert benchmark_of_task("vdc_camera").name in next(iter(frames))
