"""VidCapBench from the command line to the results folder, as a user runs it."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest

from judge_server import JudgeServer
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from runs import Run, environment, run_lmms_eval

pytestmark = pytest.mark.cli

TASKS = ("vidcapbench_ae", "vidcapbench_he")


def _verdicts(run: Run, task: str) -> list[list[dict[str, Any]]]:
    """The judgements in a task's samples, shape (n_runs, n_pairs)."""
    judgements = [j for sample in run.samples(task) for j in sample["acc"]["judgements"]]
    return [[j for j in judgements if j["run"] == number] for number in range(3)]


def _recomputed(run: Run, *tasks: str) -> dict[str, list[float]]:
    """The numbers of each judge run again, from the verdicts in the samples alone."""
    numbers: dict[str, list[float]] = {"acc": [], "pre": [], "cov": [], "con": []}
    videos: dict[str, list[int]] = {}
    for sample in (sample for task in tasks for sample in run.samples(task)):
        videos.setdefault(sample["con"]["video_id"], []).append(sample["con"]["n_tokens"])
    tokens = fmean(fmean(counts) for counts in videos.values())
    for runs in zip(*(_verdicts(run, task) for task in tasks), strict=True):
        judgements = [judgement for one in runs for judgement in one]
        n = {v: sum(j["verdict"] == v for j in judgements) for v in ("correct", "partial", "wrong")}
        mentioned = sum(n.values())
        acc = 100 * n["correct"] / len(judgements)
        numbers["acc"].append(acc)
        numbers["pre"].append(100 * (n["correct"] + n["partial"]) / mentioned)
        numbers["cov"].append(100 * mentioned / len(judgements))
        numbers["con"].append(100 * acc / tokens)
    return numbers


@pytest.mark.parametrize("n_processes", [1, 2])
def test_numbers_follow_from_the_samples(
    n_processes: int, tmp_path: Path, shared_data: Path
) -> None:
    """Captions from pixels, three judge runs, both tasks: results, samples, breakdown and check."""
    with JudgeServer() as server:
        env = environment(
            tmp_path / "cache",
            LMMS_CAPTIONS_JUDGE="a-judge",
            LMMS_CAPTIONS_JUDGE_URL=server.url,
            LMMS_CAPTIONS_T5=str(shared_data / "t5" / "spiece.model"),
        )
        run = run_lmms_eval(
            tmp_path / "out",
            *("--model", "caption_baseline", "--tasks", "vidcapbench"),
            env=env,
            n_processes=n_processes,
        )
        n_requests = server.counts.n_requests
    assert run.returncode == 0, run.log[-3000:]
    n_pairs = 0
    for task in TASKS:
        numbers = _recomputed(run, task)
        for metric, runs in numbers.items():
            assert run.results[task][f"{metric},none"] == pytest.approx(fmean(runs))
        assert run.results[task]["unscored,none"] == 0
        assert "|judge:a-judge|runs:3|" in run.signatures[task]
        overall = run.breakdown(task)["overall"]["all"]
        assert overall["con_std"] == pytest.approx(pstdev(numbers["con"]))
        n_pairs += overall["n_questions"]
    assert n_requests == 2 * 3 * n_pairs
    group = run.results["vidcapbench"]
    pooled = {metric: fmean(runs) for metric, runs in _recomputed(run, *TASKS).items()}
    assert {metric: group[f"{metric},none"] for metric in pooled} == pytest.approx(pooled)
    overall = run.breakdown("vidcapbench")["overall"]["all"]
    assert overall["n_questions"] == n_pairs
    assert {metric: overall[metric] for metric in pooled} == pytest.approx(pooled)
    # A mean of the two tasks would be something else.
    means = {m: fmean(run.results[task][f"{m},none"] for task in TASKS) for m in pooled}
    assert means["cov"] != pytest.approx(pooled["cov"])
    assert group["unscored,none"] == 0
    assert run.signatures["vidcapbench"].startswith("judge:a-judge|runs:3|")
    assert "it is meant to be judged by people" in run.log.replace("\n", " ")
    assert main(["check", str(tmp_path / "out")]) == 0
