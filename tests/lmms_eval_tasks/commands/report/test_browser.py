"""The report as people use it, in a headless browser: every number beside the runs' own files."""

from __future__ import annotations

import json
import re
from pathlib import Path
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


def _videos(page: BrowserPage) -> list[str]:
    """The names in the table, as they are shown."""
    return page.locator("#video-table .body .row .cell.first").all_inner_texts()


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


def test_sorted_as_one_would_sort_the_logs(runs: dict[str, Any], opened: Open) -> None:
    """Worst first, by regression from one captioner to the other, by name, the longest."""
    page = opened(runs["html"])
    page.select_option("#view", label="vdc_camera")
    shares: dict[str, dict[str, float]] = {"first": {}, "other": {}}
    for name, of in shares.items():
        for sample in _logged(runs, name, "vdc_camera"):
            verdicts = _verdicts(sample, "vdc_camera")
            of[sample["vdc_acc"]["video_id"]] = sum(run.count("yes") / len(run) for run in verdicts)
    videos = list(shares["first"])
    worst = {video: shares["first"][video] + shares["other"][video] for video in videos}
    gained = {video: shares["other"][video] - shares["first"][video] for video in videos}
    for sort, key in (("worst", worst), ("regression:0:1", gained)):
        page.select_option("#sort", sort)
        assert [key[video] for video in _videos(page)] == sorted(key.values())
    page.select_option("#sort", "regression:1:0")
    assert [gained[video] for video in _videos(page)] == sorted(gained.values(), reverse=True)
    page.select_option("#sort", "name")
    assert _videos(page) == sorted(videos)
    page.select_option("#sort", "longest")
    longest = max(
        range(4), key=lambda place: max(len(FIRST[place].split()), len(OTHER[place].split()))
    )
    assert _videos(page)[0] == videos[longest]


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


def test_search_looks_into_captions_questions_and_answers(
    runs: dict[str, Any], opened: Open
) -> None:
    """In letters of either case; a name of a video; nothing where nothing is."""
    page = opened(runs["html"])
    page.select_option("#view", label="vdc_camera")
    for text, captions in (
        ("yellow STAR", 1),
        ("blue square", 1),
        ("<b>green", 1),
        ("sample_03", 1),
    ):
        page.fill("#search", text)
        page.locator("#found").filter(has_text=f"{captions} of 4 captions").wait_for()
    question = _logged(runs, "first", "vdc_camera")[0]["breakdown"]["asked"][1]
    n_asked = sum(
        question in sample["breakdown"]["asked"] for sample in _logged(runs, "first", "vdc_camera")
    )
    page.fill("#search", question)
    page.locator("#found").filter(has_text=f"{n_asked} of 4 captions, {n_asked} of").wait_for()
    page.fill("#search", "no such words at all")
    page.locator("#found").filter(has_text="0 of 4 captions").wait_for()
    assert _videos(page) == []


def test_a_brush_over_lengths_filters_the_videos(runs: dict[str, Any], opened: Open) -> None:
    """By mouse and by numbers; cleared, all are there again."""
    page = opened(runs["html"])
    page.select_option("#view", label="vcapsbench")
    words = [[len(text.split()) for text in captions] for captions in (FIRST, OTHER)]
    for low, high in ((7, 9), (10, 100), (0, 5)):
        page.fill("#length-from", str(low))
        page.fill("#length-to", str(high))
        meant = sum(any(low <= of[place] <= high for of in words) for place in range(4))
        assert _found(page)[0] == meant
    page.click("#clear-brush")
    assert _found(page)[0] == 4
    page.locator("#scatter").scroll_into_view_if_needed()
    box = page.locator("#scatter canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + 32)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 200, steps=4)
    page.mouse.move(box["x"] + box["width"] - 26, box["y"] + box["height"] - 52, steps=4)
    page.mouse.up()
    page.locator("#brush-note:not([hidden])").wait_for()
    brush = page.evaluate("report.state.brush")
    scored = [
        [
            100 * sum(v == "positive" for run in runs_of for v in run) / sum(map(len, runs_of))
            for runs_of in of
        ]
        for of in (
            [_verdicts(sample, "vcapsbench") for sample in _logged(runs, name, "vcapsbench")]
            for name in ("first", "other")
        )
    ]
    (x0, x1), (y0, y1) = brush["x"], brush["y"]
    assert (brush["axis"], brush["metric"]) == ("words", "ar")
    assert _found(page)[0] == sum(
        any(x0 <= words[c][p] <= x1 and y0 <= scored[c][p] <= y1 for c in (0, 1)) for p in range(4)
    )
    assert 0 < _found(page)[0] < 4


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


@pytest.mark.parametrize("task", TASKS[:4])
def test_what_is_missed_leads_to_its_questions(
    task: str, runs: dict[str, Any], opened: Open
) -> None:
    """Every number of the table is a button that shows as many questions; 0 is none."""
    page = opened(runs["html"])
    page.select_option("#view", label=task)
    cells = page.locator("#missed .view:not([hidden]) td")
    n_buttons = 0
    for place in range(cells.count()):
        cell = cells.nth(place)
        n = int(cell.inner_text().split()[0].replace("–", "0"))
        assert cell.locator("button").count() == (n > 0)
        if n:
            group = cell.locator("xpath=ancestor::tr/th").inner_text()
            cell.locator("button").click()
            assert page.locator("#category option:checked").inner_text() == group
            # The stand-in says the same in both judge runs, and the table counts verdicts.
            assert 2 * _found(page)[2] == n
            n_buttons += 1
    assert n_buttons


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


def test_light_and_dark(runs: dict[str, Any], opened: Open) -> None:
    """As the system has it, until the button says otherwise."""
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = opened(runs["html"], color_scheme="dark")
    page = opened(runs["html"])
    light = page.evaluate(colour)
    page.click("#theme")
    assert page.evaluate(colour) == dark.evaluate(colour) != light
    page.click("#theme")
    assert page.evaluate(colour) == light


@pytest.mark.parametrize("task", TASKS)
def test_a_narrow_window_scrolls_down_alone(task: str, runs: dict[str, Any], opened: Open) -> None:
    """At a width of 400 pixels tables scroll by themselves, with a row open, too."""
    page = opened(runs["html"], viewport={"width": 400, "height": 800})
    page.select_option("#view", label=task)
    page.locator("#video-table .body .row").first.click()
    page.locator("#details .question").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


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


def test_paper_shows_no_controls(runs: dict[str, Any], opened: Open, tmp_path: Path) -> None:
    """Printed, charts and tables are there, and what is pressed is not."""
    page = opened(runs["html"])
    page.emulate_media(media="print")
    assert not page.locator("#controls").is_visible()
    assert not page.locator("#search").is_visible()
    assert page.locator("#shape canvas").first.is_visible()
    assert page.pdf(path=tmp_path / "report.pdf")[:5] == b"%PDF-"
