"""VCapsBench and CapQuiz from the command line to the results folder, as a user runs them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from runs import Run, environment, run_lmms_eval

pytestmark = pytest.mark.cli

TASKS = ("vcapsbench", "capquiz", "capquiz_detailed")


def _verdicts(run: Run, task: str, metric: str) -> Counter[str]:
    """Every verdict of a task, from its samples alone."""
    return Counter(
        judgement["verdict"]
        for sample in run.samples(task)
        for judgement in sample[metric]["judgements"]
    )


def test_numbers_follow_from_the_samples_and_a_rerun_is_free(tmp_path: Path) -> None:
    """One run of three tasks: results, samples, breakdowns agree; again, no call is made."""
    cache = tmp_path / "cache"
    captions = sample_root(cache) / "vdc" / "captions.jsonl"
    with JudgeServer(Behaviour()) as server:
        env = environment(cache, LMMS_CAPTIONS_JUDGE="a-judge", LMMS_CAPTIONS_JUDGE_URL=server.url)
        arguments = (
            "--model", "caption_file", "--model_args", f"path={captions}",
            "--tasks", ",".join(TASKS),
        )  # fmt: skip
        run = run_lmms_eval(tmp_path / "out", *arguments, env=env)
        assert run.returncode == 0, run.log[-3000:]
        results = run.results
        n_distinct = len(server.counts.answered)
        again = run_lmms_eval(tmp_path / "again", *arguments, env=env)
        assert len(server.counts.answered) == n_distinct
    counts = _verdicts(run, "vcapsbench", "ar")
    n_spoken = counts["positive"] + counts["negative"]
    assert results["vcapsbench"]["ar,none"] == 100 * counts["positive"] / counts.total()
    assert results["vcapsbench"]["ir,none"] == 100 * counts["negative"] / n_spoken
    assert results["vcapsbench"]["cr,none"] == 100 * n_spoken / counts.total()
    assert "|asks:3|unscored:0/" in run.signatures["vcapsbench"]
    for task in TASKS[1:]:
        counts = _verdicts(run, task, "capf1")
        n_right, n_answered = counts["true_positive"], counts.total() - counts["false_negative"]
        assert results[task]["capp,none"] == pytest.approx(100 * n_right / n_answered)
        assert results[task]["capr,none"] == pytest.approx(100 * n_right / counts.total())
    for task, metric in zip(TASKS, ("ar", "capf1", "capf1"), strict=True):
        overall = run.breakdown(task)["overall"]["all"]
        assert overall[metric] == results[task][f"{metric},none"]
        assert results[task][f"{metric}_stderr_clt,none"] > 0
        assert again.results[task][f"{metric},none"] == results[task][f"{metric},none"]
        assert results[task]["unscored,none"] == 0
    # The same captions and questions: the two CapQuiz tasks differ in what captioners are asked.
    assert results["capquiz"]["capf1,none"] == results["capquiz_detailed"]["capf1,none"]
