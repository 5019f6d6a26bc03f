"""All five benchmarks in one run, beside somebody else's task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.task_names import tasks_of
from recorded_runs import RECORDING, differences
from runs import Run, environment, run_lmms_eval

pytestmark = pytest.mark.cli

BENCHMARKS = ("vdc_score", "vidcapbench", "vcapsbench", "capquiz", "msvd_eval")


def _numbers(run: Run) -> dict[str, str]:
    """Every number of every task, ``nan`` as text so that it can be compared."""
    return {
        f"{task} {metric}": str(value)
        for task, values in run.results.items()
        for metric, value in values.items()
        if metric.endswith(",none") and isinstance(value, int | float) and "_stderr" not in metric
        if task != "video_captions"
    }


def test_one_run_of_all_gives_the_numbers_of_five(tmp_path: Path) -> None:
    """Everything is judged together, a stranger's task keeps its number, and so do ours."""
    captions = sample_root(tmp_path / "sample") / "vdc" / "captions.jsonl"
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    (tasks / "rows.json").write_text(json.dumps({"video": "sample_01", "gold": "nothing"}))
    (tasks / "other.yaml").write_text(
        "task: somebody_elses\ndataset_path: json\ntest_split: test\n"
        "dataset_kwargs: {data_files: {test: rows.json}}\noutput_type: generate_until\n"
        "doc_to_text: Describe.\ndoc_to_target: '{{gold}}'\n"
        "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n"
    )
    model = ("--model", "caption_file", "--model_args", f"path={captions}")
    with JudgeServer(Behaviour(latency_s=0.3)) as server:

        def run(name: str, selected: str, cache: Path) -> Run:
            env = environment(
                cache,
                LMMS_CAPTIONS_JUDGE="a-judge",
                LMMS_CAPTIONS_JUDGE_URL=server.url,
                LMMS_CAPTIONS_JUDGE_CONCURRENCY="512",
            )
            line = (*model, "--tasks", selected, "--include_path", str(tasks))
            return run_lmms_eval(tmp_path / name, *line, env=env)

        together = run("all", "video_captions,somebody_elses", tmp_path / "cache")
        assert server.counts.most_in_flight > 200, "no benchmark waits for another one"
        server.behaviour.latency_s = 0.0
        alone: dict[str, str] = {}
        for number, benchmark in enumerate(BENCHMARKS):
            alone.update(_numbers(run(f"one{number}", benchmark, tmp_path / "cache-of-one")))
    assert together.results["somebody_elses"]["exact_match,none"] == 0.0
    numbers = _numbers(together)
    del numbers["somebody_elses exact_match,none"]
    assert len(numbers) > 40
    assert numbers == alone
    assert main(["check", str(tmp_path / "all")]) == 0
    for task in (*tasks_of("video_captions"), "vidcapbench"):
        assert together.breakdown(task)["task"] == task


def test_the_demo_has_the_numbers_of_the_version_before(tmp_path: Path) -> None:
    """All numbers of the sample, from pixels to scores, are those of 26bec16 to the digit."""
    env = environment(
        tmp_path / "cache",
        LMMS_CAPTIONS_JUDGE="lexical",
        LMMS_CAPTIONS_T5=str(RECORDING / "t5"),
    )
    line = ("--model", "caption_baseline", "--tasks", "video_captions")
    run = run_lmms_eval(tmp_path / "demo", *line, env=env)
    breakdowns = {
        path.stem.partition("_breakdown_")[2]: json.loads(path.read_text())
        for path in run.output.glob("**/*_breakdown_*.json")
    }
    recorded = json.loads((RECORDING / "demo.json").read_text())
    now = {"results": run.document["results"], "breakdowns": breakdowns}
    # These were a hundredth of their metric's unit: test_contributions.py checks what they are now.
    changes = [change for change in differences(recorded, now) if "_stderr_clt," not in change]
    assert not changes, "\n".join([f"{len(changes)} changes", *changes[:20]])
    assert main(["check", str(run.output)]) == 0
