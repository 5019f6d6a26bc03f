"""Every number of the page, beside the files that the run wrote, for every task and group."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from label_runs import judged_run
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks
from report_pages import Page, html_of, parsed

TASKS = sorted(our_benchmarks())
CAPTIONS = (
    "A red circle on the left moves to the right. The camera does not move.",
    "",
    "A blue square in a dark room. It zooms in.",
    "Nothing can be said of this one.",
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the first test makes for all."""
    return {"root": tmp_path_factory.mktemp("runs")}


@pytest.fixture
def made(folders: dict[str, Any], offline: pytest.MonkeyPatch) -> dict[str, Any]:
    """A run over every task of every benchmark, its results file and its page."""
    if "page" not in folders:
        folders["results"] = judged_run(folders["root"], dict.fromkeys(TASKS, CAPTIONS))
        folders["page"] = parsed(html_of(folders["root"]))
    return folders


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _number(figures: dict[str, Any], metric: str) -> str | None:
    """A number of a breakdown file as it is printed."""
    value, low, high = (figures.get(f"{metric}{end}") for end in ("", "_ci_low", "_ci_high"))
    if value is None:
        return None
    return f"{value:.2f}" if low is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"


@pytest.mark.parametrize("task", TASKS)
def test_every_number_of_a_breakdown_is_the_file_s(task: str, made: dict[str, Any]) -> None:
    """Of every section, group and metric, to the printed digit, also without a script."""
    page: Page = made["page"]
    (path,) = made["results"].parent.glob(f"*_breakdown_{task}.json")
    metrics = list(our_benchmarks()[task].metrics)
    n_compared = 0
    for section, groups in _json(path).items():
        is_section = isinstance(groups, dict) and any("n_questions" in of for of in groups.values())
        if not is_section or (section != "overall" and len(groups) < 2):
            continue
        table = page.table(section, task)
        shown = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
        assert list(shown) == list(groups)
        for group, figures in groups.items():
            for metric in metrics:
                expected = _number(figures, metric)
                column = shown[group].get(f"{metric} [95%]")
                assert column in ((None, "–") if expected is None else (expected,))
                n_compared += expected is not None
            if section != "overall":
                assert shown[group]["questions"] == f"{figures['n_questions']:,}"
    assert n_compared


@pytest.mark.parametrize("task", TASKS)
def test_the_head_has_every_score_of_the_results(task: str, made: dict[str, Any]) -> None:
    """The headline with its interval, the other metrics, and what is unscored."""
    page: Page = made["page"]
    table = page.table("Every score")
    (row,) = (dict(zip(table.header, row, strict=True)) for row in table.rows if row[0] == task)
    values = _json(made["results"])["results"][task]
    signature = _json(made["results"])["lmms_eval_captions"]["tasks"][task]["signature"]
    benchmark = our_benchmarks()[task]
    assert row["metric"] == benchmark.headline
    assert row["score [95%]"].split(" ")[0] == f"{values[f'{benchmark.headline},none']:.2f}"
    for metric in benchmark.metrics:
        if metric != benchmark.headline:
            value = values[f"{metric},none"]
            printed = "N/A" if f"{metric}:unavailable" in signature else f"{value:.2f}"
            assert f"{metric} {printed}" in row["other metrics"]
    if "|unscored:" in signature:
        n, of = signature.partition("|unscored:")[2].partition("|")[0].split("/")
        assert row["unscored"] == f"{int(n):,}/{int(of):,}"


@pytest.mark.parametrize("task", TASKS)
def test_what_is_missed_is_counted_from_the_log(task: str, made: dict[str, Any]) -> None:
    """Verdicts of all judge runs by group, counted from the sample log alone."""
    page: Page = made["page"]
    benchmark = our_benchmarks()[task]
    (log,) = made["results"].parent.glob(f"*_samples_{task}.jsonl")
    items = [json.loads(line)["breakdown"] for line in log.read_text("utf-8").splitlines()]
    counts: dict[tuple[str, str, str], list[int]] = {}
    for item in items:
        for section, runs in item["groups"].items():
            for names, verdicts in zip(runs, item["values"][benchmark.headline], strict=True):
                for group, verdict in zip(names, verdicts, strict=True):
                    for title, labels in (
                        ("Not covered", benchmark.missed),
                        ("Wrong", benchmark.wrong),
                    ):
                        if verdict is not None:
                            n = counts.setdefault((title, section, group), [0, 0])
                            n[0] += verdict in labels
                            n[1] += 1
    shown = [t for t in page.tables if t.view == task and t.section == "missed"]
    n_groups = {s: len({g for _, section, g in counts if section == s}) for _, s, _ in counts}
    expected = {(t, s) for (t, s, _), n in counts.items() if n[0] and n_groups[s] > 1}
    assert len(shown) == len(expected)
    for title, section in expected:
        (table,) = (
            t for t in shown if t.caption.startswith(title) and t.caption.endswith(f"by {section}")
        )
        for group, text in table.rows:
            n_labels, n_all = counts[title, section, group]
            assert text == f"{n_labels:,} ({n_labels / n_all:.1%})"


@pytest.mark.parametrize("task", TASKS)
def test_every_question_is_there_as_it_was_logged(task: str, made: dict[str, Any]) -> None:
    """Caption, question, gold answer, groups, and in every judge run verdict, answer and reply."""
    page: Page = made["page"]
    headline = our_benchmarks()[task].headline
    (log,) = made["results"].parent.glob(f"*_samples_{task}.jsonl")
    samples = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    shown = [row for row in page.questions() if row[0] == task]
    assert [row[1] for row in shown] == [sample[headline]["video_id"] for sample in samples]
    n_said = 0
    for sample, (_, _, captions, questions) in zip(samples, shown, strict=True):
        assert captions == sample["filtered_resps"]
        judgements = sample[headline]["judgements"]
        groups = sample["breakdown"]["groups"]
        runs = sorted({said["run"] for said in judgements})
        for place, question in enumerate(questions):
            assert question.groups == {
                section: of[0][place] for section, of in groups.items() if of[0][place] is not None
            }
            for run in runs:
                said = [one for one in judgements if one["run"] == run][place]
                assert question.question == said.get("question", "")
                assert question.answer == str(said.get("answer", said.get("reference", "")) or "")
                graded = said.get("score", said.get("numbers", said.get("cider")))
                rated = "unscored" if graded in (None, {}) else "rated"
                has_labels = bool(our_benchmarks()[task].metrics[headline].labels)
                expected = (said["verdict"] or "unscored") if has_labels else rated
                assert question.verdicts[0][run] == expected
                words = question.said[0][run]
                assert words["reply"] == said["reply"]
                assert words["reason"] == said["reason"]
                assert words["answer"] == said.get("predicted_answer", said.get("choice"))
                n_said += 1
    assert n_said == sum(len(sample[headline]["judgements"]) for sample in samples)


def test_rows_have_each_caption_s_own_numbers(made: dict[str, Any]) -> None:
    """Words as counted here; every metric of a caption alone as the run's log has it."""
    core = made["page"].core
    rows = core["rows"]
    logged: dict[tuple[str, str, str], float | None] = {}
    for task, benchmark in our_benchmarks().items():
        (log,) = made["results"].parent.glob(f"*_samples_{task}.jsonl")
        for line in log.read_text("utf-8").splitlines():
            item = json.loads(line)["breakdown"]
            for metric in benchmark.metrics:
                logged[task, item["video_id"], metric] = _alone(benchmark, metric, item)
    n_compared = 0
    for place, video in enumerate(rows["video"]):
        task = core["tasks"][rows["task"][place]]["name"]
        assert rows["words"][0][place] in {len(caption.split()) for caption in CAPTIONS}
        for metric in our_benchmarks()[task].metrics:
            expected = logged[task, video, metric]
            value = rows["values"][metric][0][place]
            if expected is not None:
                assert value == pytest.approx(expected, abs=1e-3), (task, video, metric)
                n_compared += 1
    assert n_compared == sum(value is not None for value in logged.values()) > 40


def _alone(benchmark: Any, metric: str, item: dict[str, Any]) -> float | None:
    """A metric of one caption by hand, of those that are simple shares."""
    counted: dict[str, Any] = {
        "vdc_acc": lambda v: v == "yes",
        "vdd_acc": lambda v: v == "yes",
        "acc": lambda v: v == "correct",
        "ar": lambda v: v == "positive",
    }
    if metric not in counted:
        return None
    runs = [[v for v in run if v is not None] for run in item["values"][benchmark.headline]]
    shares = [100 * sum(map(counted[metric], run)) / len(run) for run in runs if run]
    return sum(shares) / len(shares) if shares else None
