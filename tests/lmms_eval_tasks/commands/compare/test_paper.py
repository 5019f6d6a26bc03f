"""The papers' tables hold the numbers that the runs printed, laid out as in the paper."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.results_folder import read_results
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, benchmark_of_task
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS
from planted_pairs import TASKS, drawn, plant, records
from planted_runs import write_run


def _printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert main(["compare", *map(str, arguments)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("task", TASKS)
def test_numbers_are_those_of_the_runs(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of results and breakdown, of every captioner, to the last digit."""
    for seed, name in enumerate("ab"):
        plant(tmp_path / name, task, drawn(task, seed))
    document = json.loads(
        _printed(capsys, tmp_path / "a", tmp_path / "b", "--paper", "--format", "json")
    )
    runs: dict[str, Any] = {name: read_results(tmp_path / name)[0] for name in "ab"}
    groups = {name: runs[name].breakdown(task) for name in "ab"}
    n_of_groups = 0
    for number in document:
        name, metric = number["captioner"], number["metric"]
        if number["heading"].casefold() in ("overall", "all") or not task.startswith("v"):
            value = runs[name].tasks[task].scores[metric]
            if number["heading"] in ("Descriptive", "Inferential"):
                value = groups[name]["groups"][number["heading"]][metric]
            assert number["value"] == value
        elif number["value"] is not None and task != "vdc_camera":
            section = "dimensions" if task.startswith("vid") else "categories"
            assert number["value"] == groups[name][section][number["heading"].lower()][metric]
            n_of_groups += 1
    assert {number["captioner"] for number in document} == {"a", "b"}
    table = benchmark_of_task(task).paper_table
    assert table is not None
    assert {number["table"] for number in document} == {table.source}
    assert n_of_groups or task in ("vdc_camera", "capquiz", "msvd_eval_ref_only")


def test_vdc_has_accuracy_and_score_of_each_aspect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """AuroraCap's Table 7: Acc / Score in one cell, two decimals."""
    tasks = [f"vdc_{aspect}" for aspect in ASPECTS]
    of = {task: records(task, drawn(task, seed)) for seed, task in enumerate(tasks)}
    write_run(tmp_path / "a", of, groups={"vdc_score": tasks})
    text = _printed(capsys, tmp_path / "a", "--format", "markdown")
    header, _, row = (line for line in text.splitlines() if line.startswith("|"))
    assert header.startswith("| Model | Camera Acc / Score | Short Acc / Score |")
    assert len(re.findall(r"\d\d\.\d\d / \d\.\d\d", row)) == 5


def test_vidcapbench_has_four_metrics_in_a_cell_and_the_deviation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """VidCapBench's Table 3, with VDC's own numbers where there are some."""
    of = {"vidcapbench_ae": records("vidcapbench_ae", drawn("vidcapbench_ae", 1, n_runs=3))}
    write_run(tmp_path / "a", of)
    text = _printed(capsys, tmp_path / "a", "--format", "latex")
    assert "Overall & Video Aesthetics & Video Content & Video Motion & Physical Laws" in text
    assert "VDC" not in text
    assert re.search(r"a & \d+\.\d \(\$\\pm\$\d\.\d\) / \d+\.\d / \d+\.\d / \d+\.\d & ", text)
    tasks = [f"vdc_{aspect}" for aspect in ASPECTS]
    of |= {task: records(task, drawn(task, seed)) for seed, task in enumerate(tasks)}
    write_run(tmp_path / "a", of, groups={"vdc_score": tasks})
    both = _printed(
        capsys, tmp_path / "a", "--paper", "--tasks", "vidcapbench_ae", "--format", "latex"
    )
    assert "Physical Laws & VDC Overall" in both


def test_vcapsbench_has_rows_for_each_metric_in_two_pieces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """VCapsBench's Table 1: AR, IR and CR below one another, the lowest IR in bold."""
    for seed, name in enumerate("ab"):
        plant(tmp_path / name, "vcapsbench", drawn("vcapsbench", seed, good=0.3 + 0.4 * seed))
    text = _printed(capsys, tmp_path / "a", tmp_path / "b", "--paper", "--format", "latex")
    assert text.count(r"\begin{tabular}{llrrrrrrrrrrr}") == 2
    assert r"\multicolumn{7}{c}{Content \& Entity} & \multicolumn{4}{c}{Color \& Lighting}" in text
    last = text.split(r"\begin{tabular}")[-1].splitlines()
    for metric in ("AR", "IR", "CR"):
        (better,) = (line for line in last if line.startswith(f"{metric} & b & "))
        (worse,) = (line for line in last if line.startswith(f"{metric} & a & "))
        assert re.search(r"\\textbf\{\d+\.\d\d\} \\\\$", better) or metric == "CR"
        assert not re.search(r"\\textbf\{\d+\.\d\d\} \\\\$", worse) or metric == "CR"


def test_capquiz_has_three_columns_under_each_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CapQuiz's Table 3."""
    plant(tmp_path / "a", "capquiz", drawn("capquiz", 1))
    text = _printed(capsys, tmp_path / "a", "--format", "latex")
    over = r" & \multicolumn{3}{c}{Overall} & \multicolumn{3}{c}{Descriptive}"
    assert over in text
    assert "Model & F1 & P & R & F1 & P & R & F1 & P & R" in text


def test_rows_that_were_judged_in_different_ways_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each row's signature stands below, and what differs above the table."""
    plant(tmp_path / "a", "capquiz", drawn("capquiz", 1))
    plant(tmp_path / "b", "capquiz", drawn("capquiz", 2), judge="gpt-4.1")
    text = _printed(capsys, tmp_path / "a", tmp_path / "b", "--paper")
    assert "WARNING: rows differ in judge: do not set them side by side." in text
    assert "judge:gpt-4.1" in text


def test_a_run_without_a_score_has_no_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was left unscored stands as a dash, as the run prints nan."""
    plant(tmp_path / "a", "capquiz", drawn("capquiz", 1))
    path = next((tmp_path / "a" / "m").glob("*_results.json"))
    document = json.loads(path.read_text())
    document["results"]["capquiz"] = dict.fromkeys(document["results"]["capquiz"], float("nan"))
    document["lmms_eval_captions"]["tasks"]["capquiz"]["breakdown"] = "none: there is no score"
    path.write_text(json.dumps(document))
    text = _printed(capsys, tmp_path / "a")
    (row,) = (line for line in text.splitlines() if line.startswith("a "))
    assert set(row.split()[1:]) == {"-"}


def test_a_task_without_a_table_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It lists those that have one."""
    plant(tmp_path / "a", "capquiz", drawn("capquiz", 1))
    assert main(["compare", str(tmp_path / "a"), "--tasks", "vdc_score"]) == 2
    assert "any of capquiz, got 'vdc_score'" in capsys.readouterr().err


def test_every_table_is_of_its_benchmarks_own_tasks() -> None:
    """A variant that is made of a benchmark by ``replace`` does not keep its table."""
    for name, benchmark in all_benchmarks().items():
        table = benchmark.paper_table
        assert table is None or set(table.names) & set(benchmark.tasks), name
