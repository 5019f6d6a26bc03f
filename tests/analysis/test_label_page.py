"""The page of ``label``: what it asks of each benchmark, and a person at it in a browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page as BrowserPage

from label_runs import judged_run, page_of, reload_saved, write_page
from lmms_eval_captions.analysis.captioners import captioners_of
from lmms_eval_captions.analysis.gradings import grading_of
from lmms_eval_captions.analysis.label.labels import read_labels
from lmms_eval_captions.analysis.label.page import PageOptions, render
from lmms_eval_captions.analysis.label.results_pages import verdict_page
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, benchmark_of_task

HOSTILE = "</script><script>document.title='taken'</script><!-- \"' \u202e\u05d0 & \u2028 \ud83d"
CAPTIONS = ("A red circle moves to the right.", HOSTILE, "", "A blue square. " * 7000)
GRADED = {
    task: benchmark
    for benchmark in all_benchmarks().values()
    for task in benchmark.tasks
    if grading_of(benchmark) is not None
}


pytestmark = pytest.mark.usefixtures("offline")


def _data_in(html: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', html, re.S)
    data: dict[str, Any] = json.loads(text)
    return data


@pytest.mark.parametrize("task", GRADED)
def test_every_benchmark_asks_a_person_what_it_asks_its_judge(task: str, tmp_path: Path) -> None:
    """Each judged question with its caption, in the judge's terms; hostile text ends nothing."""
    judged_run(tmp_path, {task: CAPTIONS})
    page = page_of(tmp_path, n=10_000)
    data = _data_in(render("A page", page.data))
    grading = grading_of(GRADED[task])
    assert grading is not None
    (table,) = captioners_of([tmp_path])[0].verdicts(task).tables
    asked = table.asked()
    values = asked[table.head["values"][GRADED[task].headline]].map(np.ravel)
    judged = asked[[None not in of_question for of_question in values]]
    n_asked = len(judged.drop_duplicates(["caption", "question_index"]))
    assert len(data["items"]) == n_asked > 0
    for item in data["items"]:
        names = [choice["name"] for choice in item["choices"] or data["gradings"][task]["choices"]]
        keys = [choice["key"] for choice in item["choices"] or data["gradings"][task]["choices"]]
        assert len(set(keys)) == len(keys)
        assert names or data["gradings"][task]["ratings"]
        for label in item["judge"]:
            assert label is None or label["choice"] in (names or [None])
        assert bool(item["references"]) == (task in ("msvd_eval_ref_only", "msvd_eval_combined"))
    shown = {data["captions"][place] for item in data["items"] for place in item["captions"]}
    assert any(caption.startswith("</script>") for caption in shown)


def test_a_seed_draws_the_same_sample_again(tmp_path: Path) -> None:
    """Another seed draws another one."""
    judged_run(tmp_path, {"vidcapbench_ae": CAPTIONS})
    data: list[Any] = [page_of(tmp_path, n=8, seed=seed).data for seed in (1, 1, 2)]
    assert data[0]["items"] == data[1]["items"]
    assert data[0]["page"] == data[1]["page"] != data[2]["page"]
    assert len({str(item["row"]) for item in data[0]["items"]}) == 8


def test_without_videos_the_page_works_and_says_so(tmp_path: Path) -> None:
    """Nothing is downloaded for a page."""
    judged_run(tmp_path, {"vidcapbench_ae": CAPTIONS[:2]})
    nowhere = replace(data_settings(), data=None, cache=tmp_path / "empty")
    page = verdict_page(captioners_of([tmp_path]), PageOptions(n=5), nowhere)
    assert page.data["frames"] == {}
    assert page.notes[0].startswith("frames of 0 of")
    assert "set LMMS_CAPTIONS_DATA" in page.notes[1]


def test_twenty_verdicts_by_keyboard(browser: Any, tmp_path: Path) -> None:
    """Half, a reload, the other half, an export, an import elsewhere: the same counts."""
    judged_run(tmp_path, {"vidcapbench_ae": CAPTIONS})
    write_page(tmp_path / "page.html", page_of(tmp_path, n=20, n_frames=1))
    asked: list[str] = []
    context = browser.new_context(viewport={"width": 390, "height": 844}, accept_downloads=True)
    page = _opened(context, tmp_path, asked)
    page.keyboard.type("Ann")
    page.keyboard.press("Enter")
    assert not page.locator("#judge").is_visible()
    for place in range(10):
        page.keyboard.press("210-"[place % 4])
        assert page.locator("#judge").is_visible()
        page.keyboard.press("Enter")
    reload_saved(page)
    assert page.inner_text("#count").startswith("10 of 20 answered")
    for place in range(10, 20):
        page.keyboard.press("210-"[place % 4])
        page.keyboard.press("Enter")
    assert page.title() == "A page"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    with page.expect_download() as download:
        page.keyboard.press("x")
    exported = tmp_path / "labels.jsonl"
    download.value.save_as(exported)
    assert page.inner_text("#count") == "20 of 20 answered"
    elsewhere = _opened(browser.new_context(), tmp_path, asked)
    elsewhere.set_input_files("#file", exported)
    elsewhere.wait_for_function(
        "document.getElementById('count').textContent.startsWith('20 of 20')"
    )
    labels = read_labels([exported])
    assert len(labels.verdicts) == 20
    assert set(labels.verdicts["annotator"]) == {"Ann"}
    assert labels.notes == []
    rows = [json.loads(line) for line in exported.read_text(encoding="utf-8").splitlines()]
    said = [row["label"]["choice"] for row in rows]
    assert said == ["correct", "partial", "neutral", "wrong"] * 5
    assert all(row["seconds"] >= 0 and len(row["judge"]) == 2 for row in rows)
    assert {url for url in asked if not url.startswith(("file:", "data:", "blob:"))} == set()


def test_two_tabs_lose_nothing_of_each_other(browser: Any, tmp_path: Path) -> None:
    """Each answers other questions in turn; a damaged store is begun anew."""
    judged_run(tmp_path, {"vidcapbench_ae": CAPTIONS})
    write_page(tmp_path / "page.html", page_of(tmp_path, n=20))
    asked: list[str] = []
    context = browser.new_context()
    first = _opened(context, tmp_path, asked)
    _name(first)
    second = _opened(context, tmp_path, asked)
    _name(second)
    for key in ("2", "Enter", "1"):
        first.keyboard.press(key)
    second.locator("#count", has_text="2 of 20 answered").wait_for()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "0"):
        second.keyboard.press(key)
    for tab in (first, second):
        tab.locator("#count", has_text="3 of 20 answered").wait_for()
    first.reload()
    first.locator("#count", has_text="3 of 20 answered").wait_for()
    second.close()
    first.evaluate("localStorage.setItem(storeKey(), '{')")
    first.reload()
    first.locator("body").press("2")  # waits until the page takes keys
    first.locator("#count", has_text="1 of 20 answered").wait_for()
    assert [text for text in asked if not text.startswith("file:")] == []


def test_slips_of_the_hand_cost_nothing(browser: Any, tmp_path: Path) -> None:
    """A key held down, the same answer again, an arrow or an export instead of Enter."""
    judged_run(tmp_path, {"vdc_camera": CAPTIONS})
    write_page(tmp_path / "page.html", page_of(tmp_path, n=20))
    page = _opened(browser.new_context(accept_downloads=True), tmp_path, [])
    _name(page)
    for _ in range(5):
        page.keyboard.down("s")
    page.keyboard.up("s")
    assert "1 skipped" in page.inner_text("#count")
    for key in ("y", "4", "ArrowRight"):
        page.keyboard.press(key)
    assert page.inner_text("#count").startswith("1 of 20 answered")
    for key in ("3", "ArrowRight"):
        page.keyboard.press(key)
    assert "not complete" in page.inner_text("#message")
    page.keyboard.press("n")
    with page.expect_download() as download:
        page.keyboard.press("X")
    page.keyboard.press("Enter")
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    rows = [json.loads(line) for line in download.value.path().read_text("utf-8").splitlines()]
    assert [row["label"] and row["label"]["choice"] for row in rows] == [None, "yes", "no"]
    flags = "Object.values(state.rows).map((row) => row.changed_after_reveal)"
    assert not any(page.evaluate(flags))
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("y")
    page.keyboard.press("Enter")
    assert sum(page.evaluate(flags)) == 1


def test_the_name_is_asked_before_the_first_question(browser: Any, tmp_path: Path) -> None:
    """No shortcut answers anything before; none is typed into a name that is filled in."""
    judged_run(tmp_path, {"vidcapbench_ae": CAPTIONS})
    write_page(tmp_path / "page.html", page_of(tmp_path, n=5))
    asked: list[str] = []
    context = browser.new_context(accept_downloads=True)
    page = _opened(context, tmp_path, asked)
    assert page.locator("#start").is_visible()
    assert not page.locator("#main").is_visible()
    assert not page.locator("#export").is_visible()
    page.keyboard.press("Enter")
    assert "name first" in page.inner_text("#message")
    page.keyboard.type(" Ann ")
    assert page.evaluate("Object.keys(state.rows).length") == 0
    page.keyboard.press("Enter")
    assert page.locator("#main").is_visible()
    assert not page.locator("#start").is_visible()
    assert page.inner_text("#who") == "Ann"
    for key in ("2", "Enter", "1"):
        page.keyboard.press(key)
    assert page.evaluate("Object.values(state.rows).map((row) => row.annotator)") == ["Ann", "Ann"]
    reload_saved(page)
    assert page.inner_text("#count").startswith("2 of 5 answered")
    page.click("#rename")
    for key in ("2", "s", "x", "ArrowRight"):
        page.keyboard.press(key)
    assert page.input_value("#annotator") == "Ann"
    page.fill("#annotator", "Bob")
    page.keyboard.press("Enter")
    assert page.inner_text("#count").startswith("0 of 5 answered")
    page.click("#rename")
    page.fill("#annotator", "Ann")
    page.click("#begin")
    assert page.inner_text("#count").startswith("2 of 5 answered")
    assert [text for text in asked if not text.startswith("file:")] == []


def _name(page: BrowserPage) -> None:
    """Give a name, unless the browser remembers it from another tab."""
    if page.locator("#start").is_visible():
        page.fill("#annotator", "Ann")
        page.press("#annotator", "Enter")


def _opened(context: Any, folder: Path, asked: list[str]) -> BrowserPage:
    """The page in a browser; what it asks the network for, and an error of its own, are told."""
    page: BrowserPage = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: asked.append(f"error: {error}"))
    page.on("console", lambda message: asked.append(f"console: {message.text}"))
    page.goto((folder / "page.html").as_uri())
    return page


def test_the_command_writes_the_file_and_says_what_is_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged_run(tmp_path, {"vidcapbench_ae": CAPTIONS})
    output = tmp_path / "new" / "page.html"
    words = ["label", str(tmp_path), "--n", "6", "--reveal", "never"]
    assert main([*words, "--frames", "1", "--output", str(output)]) == 0
    data = _data_in(output.read_text(encoding="utf-8"))
    assert (len(data["items"]), data["reveal"]) == (6, "never")
    printed = capsys.readouterr().out.splitlines()
    n_videos = len(data["frames"])
    assert printed[0] == f"frames of {n_videos} of {n_videos} videos are in the page"
    assert f"--against {tmp_path}" in printed[-1]


def test_side_by_side_hides_who_wrote_what(tmp_path: Path) -> None:
    """Both sides of both captioners, by the seed; equal captions are not asked about."""
    for name, first in (("a", "A red circle."), ("b", "A disc."), ("c", "A ball.")):
        judged_run(tmp_path / name, {"vdc_camera": (first, f"Words of {name}.", "The same.")})
    data: Any = page_of(*(tmp_path / name for name in "abc"), pairs=True).data
    assert len(data["items"]) == 6
    sides = [(item["row"]["left"], item["row"]["right"]) for item in data["items"]]
    assert {tuple(sorted(side)) for side in sides} == {("a", "b"), ("a", "c"), ("b", "c")}
    assert any(left > right for left, right in sides)
    assert any(left < right for left, right in sides)
    texts = [[data["captions"][place] for place in item["captions"]] for item in data["items"]]
    assert all(
        f"Words of {left}." == shown[0]
        for (left, _), shown in zip(sides, texts, strict=True)
        if shown[0].startswith("Words")
    )
    with pytest.raises(SettingsError, match="at least 2 captioners"):
        page_of(tmp_path / "a", pairs=True)
    assert grading_of(benchmark_of_task("vdc_camera")) is not None
