"""The report as people use it, in a headless browser: every number beside the runs' own files."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page as BrowserPage

from label_runs import judged_run
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from report_pages import TASKS, Open, html_of

FIRST = (
    "A red circle on the left moves to the right. The camera does not move.",
    "",
    "A blue square in a dark room. It zooms in.",
    "A <b>green</b> triangle & nothing else.",
)
OTHER = (
    "A red circle on the left stays where it is. The camera does not move at all.",
    "A yellow star turns in the middle of the picture.",
    "A blue square in a bright room.",
    "A <b>green</b> triangle & nothing else.",
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the first test makes for all."""
    return {"root": tmp_path_factory.mktemp("runs")}


@pytest.fixture
def runs(kept: dict[str, Any], offline: pytest.MonkeyPatch) -> dict[str, Any]:
    """Two captioners on a task of each benchmark, in two judge runs, and the page about them."""
    if "html" not in kept:
        for name, captions in (("first", FIRST), ("other", OTHER)):
            kept[name] = judged_run(kept["root"] / name, dict.fromkeys(TASKS, captions))
        kept["html"] = html_of(*(kept["root"] / name for name in ("first", "other")), n_frames=1)
    return kept


def _logged(runs: dict[str, Any], captioner: str, task: str) -> list[dict[str, Any]]:
    """The lines of a sample log."""
    (log,) = runs[captioner].parent.glob(f"*_samples_{task}.jsonl")
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()]


def _verdicts(sample: dict[str, Any], task: str) -> list[list[Any]]:
    verdicts: list[list[Any]] = sample["breakdown"]["values"][benchmark_of_task(task).headline]
    return verdicts


def _found(page: BrowserPage) -> tuple[int, ...]:
    """Captions that are shown, of all; questions that are meant, of all."""
    return tuple(
        int(n.replace(",", "")) for n in re.findall(r"[\d,]+\d|\d", page.inner_text("#found"))
    )[:4]


@pytest.mark.parametrize("task", TASKS)
def test_every_benchmark_is_shown_and_every_row_opens(
    task: str, runs: dict[str, Any], opened: Open
) -> None:
    """Charts, table and each video's caption, questions, gold answers, verdicts and replies."""
    page = opened(runs["html"])
    page.select_option("#view", label=task)
    logs = {name: _logged(runs, name, task) for name in ("first", "other")}
    headline = benchmark_of_task(task).headline
    n_questions = sum(len(sample["breakdown"]["asked"]) for sample in logs["first"])
    assert _found(page) == (4, 4, n_questions, n_questions)
    assert page.locator("#length-charts canvas").count() >= 1
    assert page.locator("#shape-charts canvas").count() >= 1 + (task != "msvd_eval_ref_free")
    page.select_option("#sort", "name")
    for place, samples in enumerate(zip(*logs.values(), strict=True)):
        page.locator("#video-table .body .row").nth(place).click()
        page.locator("#details .question").first.wait_for()
        assert page.inner_text("#details-title") == samples[0][headline]["video_id"]
        shown = page.locator("#details .caption").all_text_contents()
        texts = [sample["filtered_resps"][0] for sample in samples]
        plain = [text.replace("[only here: ", "").replace("]", "") for text in shown]
        assert plain == [text or "(the caption is empty)" for text in texts]
        questions = page.locator("#details .question")
        assert questions.count() == len(samples[0]["breakdown"]["asked"])
        summaries = page.locator("#details summary")
        for at in range(summaries.count()):
            summaries.nth(at).click()
        if summaries.count():
            page.locator("#details .reply").nth(summaries.count() - 1).wait_for()
        for at in range(questions.count()):
            said = questions.nth(at).locator(".judgement").all_inner_texts()
            expected = [
                [one for one in sample[headline]["judgements"] if one["run"] == run][at : at + 1]
                for sample in samples
                for run in (0, 1)
            ]
            assert len(said) == len(expected)
            for text, judgements in zip(said, expected, strict=True):
                for judgement in judgements:
                    assert judgement["reply"].strip() in text
                    assert (judgement.get("verdict") or "rated") in text
                assert judgements or "the caption is empty" in text
            gold = next((one.get("answer", "") for judged in expected for one in judged), "")
            assert gold in questions.nth(at).inner_text()


@pytest.mark.parametrize("task", TASKS[:4])
def test_filters_find_the_questions_that_the_logs_have(
    task: str, runs: dict[str, Any], opened: Open
) -> None:
    """Every category, every verdict, both together, and what differs between captioners."""
    page = opened(runs["html"])
    page.select_option("#view", label=task)
    logs = [_logged(runs, name, task) for name in ("first", "other")]
    asked: list[dict[str, Any]] = [
        {
            "video": place,
            "groups": {s: of[0][q] for s, of in first["breakdown"]["groups"].items()},
            "verdicts": [[run[q] for run in _verdicts(one, task)] for one in (first, other)],
        }
        for place, (first, other) in enumerate(zip(*logs, strict=True))
        for q in range(len(first["breakdown"]["asked"]))
    ]

    def expect(meant: list[dict[str, Any]]) -> None:
        assert _found(page)[::2] == (len({one["video"] for one in meant}), len(meant))

    section = list(asked[0]["groups"])[-1]
    group = asked[0]["groups"][section]
    of_group = [one for one in asked if one["groups"][section] == group]
    page.select_option("#category", label=group)
    expect(of_group)
    for label in benchmark_of_task(task).metrics[benchmark_of_task(task).headline].labels:
        page.select_option("#verdict", f"label:{label}")
        expect([one for one in of_group if any(label in runs for runs in one["verdicts"])])
        page.select_option("#verdict-captioner", "1")
        expect([one for one in of_group if label in one["verdicts"][1]])
        page.select_option("#verdict-captioner", "-1")
    page.click("#clear-filters")
    expect(asked)
    page.select_option("#verdict", "captioners")
    expect([one for one in asked if one["verdicts"][0][0] != one["verdicts"][1][0]])


def test_two_captioners_are_compared(runs: dict[str, Any], opened: Open) -> None:
    """What only one caption says is marked, and the differences are those of the table."""
    page = opened(runs["html"])
    page.select_option("#view", label="vdc_camera")
    page.select_option("#sort", "name")
    page.locator("#video-table .body .row").first.click()
    page.locator("#details ins").first.wait_for()
    only = [text.strip() for text in page.locator("#details ins").all_text_contents()]
    gone = [text.strip() for text in page.locator("#details del").all_text_contents()]
    assert " ".join(only) == "[only here: stays where it is.] [only here: at all.]"
    assert " ".join(gone) == "[only here: moves to the right.]"
    summary = page.inner_text("#forest-summary")
    assert summary.startswith("other cannot be told from first on vdc_acc: ")
    table = page.locator(".view:not([hidden]) table").first
    difference = (
        table.locator("tr", has_text="all questions").first.locator("td").nth(1).inner_text()
    )
    assert difference.split()[0] in summary
    assert page.locator("#forest").get_attribute("aria-label") == (
        f"Forest plot: {page.inner_text('#forest-title')}. {summary}"
    )
    page.select_option("#shape-metric", "vdc_score")
    assert " on vdc_score: " in page.inner_text("#forest-summary")
    legend = page.locator("#shape-charts .legend button").first
    legend.click()
    assert legend.get_attribute("aria-pressed") == "false"


def test_by_keyboard_alone(runs: dict[str, Any], opened: Open) -> None:
    """The table is walked through by arrows, a row opens by Enter and closes by Escape."""
    page = opened(runs["html"])
    page.focus("#video-table")
    for key in ("End", "ArrowUp", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    at = page.locator("#video-table .row.at .cell.first").inner_text()
    page.keyboard.press("Enter")
    page.locator("#details .question").first.wait_for()
    assert page.evaluate("document.activeElement.id") == "details-title"
    assert page.inner_text("#details-title") == at
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "video-table"
    assert not page.locator("#details").is_visible()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.locator("#next").click()
    page.locator("#details", has_text="2 of").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_keeps_people_out(scheme: str, runs: dict[str, Any], opened: Open) -> None:
    """No violation that axe-core calls serious or critical, with a row open."""
    page = opened(runs["html"], color_scheme=scheme, bypass_csp=True)
    page.locator("#video-table .body .row").first.click()
    page.locator("#details .question").first.wait_for()
    found = Axe().run(page).response["violations"]
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in grave] == []


def test_without_a_script_all_numbers_are_there(runs: dict[str, Any], opened: Open) -> None:
    """Head and tables of every view; what needs a script says so."""
    page = opened(runs["html"], java_script_enabled=False)
    assert page.locator("#head table").first.is_visible()
    assert page.locator("#shape .view").count() == len(TASKS)
    assert all(view.is_visible() for view in page.locator(".view").all())
    assert "need JavaScript" in page.inner_text("#videos")
    assert not page.locator("#controls").is_visible()
