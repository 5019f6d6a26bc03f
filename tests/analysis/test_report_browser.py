"""The report as people use it, in a headless browser: every number beside the runs' own files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page as BrowserPage

from label_runs import judged_run
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.lmms_eval_tasks.results.verdict_file import METADATA
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from report_pages import TASKS, Open, html_of, parsed

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
    return {"root": tmp_path_factory.mktemp("runs")}


@pytest.fixture
def runs(kept: dict[str, Any], offline: pytest.MonkeyPatch) -> dict[str, Any]:
    """Two captioners on a task of each benchmark, in two judge runs, and the page about them."""
    if "html" not in kept:
        for name, captions in (("first", FIRST), ("other", OTHER)):
            kept[name] = judged_run(kept["root"] / name, dict.fromkeys(TASKS, captions))
        kept["folders"] = [kept["root"] / name for name in ("first", "other")]
        kept["html"] = html_of(*kept["folders"], n_frames=1)
    return kept


def _logged(runs: dict[str, Any], captioner: str, task: str) -> list[dict[str, Any]]:
    """The lines of a sample log."""
    (log,) = runs[captioner].parent.glob(f"*_samples_{task}.jsonl")
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()]


def _verdicts(sample: dict[str, Any], task: str) -> list[list[Any]]:
    benchmark = benchmark_of_task(task)
    field = benchmark.metrics[benchmark.headline].field
    verdicts: list[list[Any]] = sample[benchmark.headline][field]
    return verdicts


def _asked(runs: dict[str, Any], captioner: str, task: str) -> list[list[dict[str, Any]]]:
    """The verdict file's rows of each caption in the first judge run, each with its groups."""
    (path,) = runs[captioner].parent.glob(f"*_verdicts_{task}.parquet")
    table = pq.read_table(path)
    sections = json.loads(table.schema.metadata[METADATA])["sections"]
    asked: list[list[dict[str, Any]]] = [[] for _ in FIRST]
    for row in table.to_pylist():
        if row["run"] == 0:
            groups = {section: row[section] for section in sections}
            asked[row["caption"]].append({**row, "groups": groups})
    return asked


def _found(page: BrowserPage) -> tuple[int, ...]:
    """Captions that are shown, of all; questions that are meant, of all."""
    return tuple(map(int, re.findall(r"\d+", page.inner_text("#found"))))


@pytest.mark.parametrize("task", TASKS)
def test_every_benchmark_is_shown_and_every_row_opens(
    task: str, runs: dict[str, Any], opened: Open
) -> None:
    """Charts, table and each video's caption, questions, gold answers, verdicts and replies."""
    page = opened(runs["html"])
    page.select_option("#view", label=task)
    logs = [_logged(runs, name, task) for name in ("first", "other")]
    headline = benchmark_of_task(task).headline
    asked = _asked(runs, "first", task)
    n_questions = sum(map(len, asked))
    assert _found(page) == (4, 4, n_questions, n_questions)
    assert page.locator("#length canvas").count() == 1
    assert page.locator("#groups canvas").count() == (task != "msvd_eval_ref_free")
    page.select_option("#sort", "name")
    for place, samples in enumerate(zip(*logs, strict=True)):
        row = page.locator("#video-table tr.row").nth(place)
        assert row.locator("button").inner_text() == samples[0][headline]["video_id"]
        row.locator("button").click()
        detail = page.locator("#video-table tr.detail")
        detail.locator(".question").first.wait_for()
        shown = detail.locator(".caption").all_text_contents()
        plain = [text.replace("[only here: ", "").replace("]", "") for text in shown]
        texts = [sample["filtered_resps"][0] for sample in samples]
        assert plain == [text or "(the caption is empty)" for text in texts]
        questions = detail.locator(".question")
        assert questions.count() == len(asked[place])
        for at in range(questions.count()):
            text = questions.nth(at).text_content()
            assert text is not None
            for sample in samples:
                for run in (0, 1):
                    of_run = [one for one in sample[headline]["judgements"] if one["run"] == run]
                    for judgement in of_run[at : at + 1]:
                        assert judgement["reply"].strip() in text
                        assert (judgement.get("verdict") or "rated") in text
                        assert judgement.get("answer", "") in text
        row.locator("button").click()
        assert detail.count() == 0


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
            "groups": row["groups"],
            "verdicts": [[run[q] for run in _verdicts(one, task)] for one in (first, other)],
        }
        for place, (first, other) in enumerate(zip(*logs, strict=True))
        for q, row in enumerate(_asked(runs, "first", task)[place])
    ]

    def expect(meant: list[dict[str, Any]]) -> None:
        assert _found(page)[::2] == (len({one["video"] for one in meant}), len(meant))

    section = list(asked[0]["groups"])[-1]
    group = asked[0]["groups"][section]
    of_group = [one for one in asked if one["groups"][section] == group]
    page.select_option("#category", label=f"{group} ({section.replace('_', ' ')})")
    expect(of_group)
    for label in benchmark_of_task(task).metrics[benchmark_of_task(task).headline].labels:
        page.select_option("#verdict", f"label:{label}")
        expect([one for one in of_group if any(label in runs for runs in one["verdicts"])])
        page.select_option("#verdict-captioner", "1")
        expect([one for one in of_group if label in one["verdicts"][1]])
        page.select_option("#verdict-captioner", "-1")
    page.click("#clear")
    expect(asked)
    page.select_option("#verdict", "captioners")
    expect([one for one in asked if one["verdicts"][0][0] != one["verdicts"][1][0]])


def test_a_search_finds_captions_questions_and_answers(runs: dict[str, Any], opened: Open) -> None:
    """Words of one caption find its row; a question's own words find this question."""
    page = opened(runs["html"])
    page.select_option("#view", label="vdc_camera")
    asked = [[row["question"] for row in rows] for rows in _asked(runs, "first", "vdc_camera")]
    question = asked[2][0]
    n_asked = sum(question in of for of in asked)
    for words, n_found in (("yellow star TURNS", 1), (question, n_asked), ("<script>", 0)):
        page.fill("#search", words)
        page.evaluate("searched.isRead")
        assert _found(page)[0] == n_found


def test_captioners_are_compared_as_the_command_does(
    runs: dict[str, Any], opened: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer, each difference with interval and p; the same if only one task is shown."""
    page = opened(runs["html"])
    folders = list(map(str, runs["folders"]))
    assert main(["compare", *folders, "--format", "json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    for of_task in compared["compared"]:
        page.select_option("#view", label=of_task["task"])
        assert of_task["summary"]
        assert all(said in page.inner_text("#comparison") for said in of_task["summary"])
    shown = parsed(runs["html"]).view("vdc_camera")["differences"]
    alone = parsed(html_of(*runs["folders"], tasks=("vdc_camera",))).view("vdc_camera")
    assert shown
    assert alone["differences"] == shown


def test_what_only_one_caption_says_is_marked(runs: dict[str, Any], opened: Open) -> None:
    """Words of the first captioner alone, and of the other alone."""
    page = opened(runs["html"])
    page.select_option("#view", label="vdc_camera")
    page.select_option("#sort", "name")
    page.locator("#video-table tr.row button").first.click()
    page.locator("tr.detail ins").first.wait_for()
    only = [text.strip() for text in page.locator("tr.detail ins").all_text_contents()]
    gone = [text.strip() for text in page.locator("tr.detail del").all_text_contents()]
    assert " ".join(only) == "[only here: stays where it is.] [only here: at all.]"
    assert " ".join(gone) == "[only here: moves to the right.]"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 1000, 400])
def test_nothing_is_cut_and_nothing_keeps_people_out(
    width: int, scheme: str, runs: dict[str, Any], opened: Open
) -> None:
    """No scrolling sideways, and no violation of accessibility by axe-core, with a row open."""
    size = {"width": width, "height": 900}
    page = opened(runs["html"], color_scheme=scheme, bypass_csp=True, viewport=size)
    page.locator("#video-table tr.row button").first.click()
    page.locator("tr.detail .question").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    cut = "[...document.querySelectorAll('.scrolls')].filter(e => e.scrollWidth > e.clientWidth)"
    assert page.evaluate(f"{cut}.length") == 0
    found = Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == []


@pytest.mark.parametrize(("right", "name"), [(41, "forest.png"), (12, "forest.svg")])
def test_charts_are_saved(right: int, name: str, runs: dict[str, Any], opened: Open) -> None:
    page = opened(runs["html"])
    chart = page.locator("#forest")
    with page.expect_download() as download:
        chart.click(position={"x": chart.evaluate("box => box.clientWidth") - right, "y": 12})
    assert download.value.suggested_filename == name
    saved = Path(download.value.path()).read_bytes()
    assert saved.startswith((b"\x89PNG", b"<svg"))
    assert len(saved) > 2_000


def test_no_folder_of_this_machine_is_in_the_page(runs: dict[str, Any]) -> None:
    """Folders are nobody else's business; videos that are not there are named as that."""
    html = html_of(*runs["folders"], n_frames=1)
    page = parsed(html)
    texts = [page.unpacked(name).decode() for name in page.scripts if name.startswith(("co", "te"))]
    assert not [text for text in (html, *texts) if str(runs["root"].parent) in text]
    assert "/home/" not in "".join(texts)
