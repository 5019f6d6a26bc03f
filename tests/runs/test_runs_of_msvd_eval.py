"""MSVD-Eval from the command line to the results folder, as a user runs it."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from runs import environment, run_lmms_eval

pytestmark = pytest.mark.cli

DIMENSIONS = ("accuracy", "completeness", "conciseness", "relevance")


def test_numbers_follow_from_the_samples(tmp_path: Path) -> None:
    """Captions from pixels, two processes, three settings: results, samples, check and a rerun."""
    with JudgeServer(Behaviour(logprobs="digits")) as server:
        env = environment(
            tmp_path / "cache", LMMS_CAPTIONS_JUDGE="a-judge", LMMS_CAPTIONS_JUDGE_URL=server.url
        )
        arguments = ("--model", "caption_baseline", "--tasks", "msvd_eval")
        run = run_lmms_eval(tmp_path / "out", *arguments, env=env, n_processes=2)
        n_requests = server.counts.n_requests
        again = run_lmms_eval(tmp_path / "again", *arguments, env=env)
        assert server.counts.n_requests == n_requests == 3 * 12
    assert run.returncode == 0, run.log[-3000:]
    assert again.scores((*DIMENSIONS, "avg")) == pytest.approx(run.scores((*DIMENSIONS, "avg")))
    for setting in ("ref_only", "ref_free", "combined"):
        task = f"msvd_eval_{setting}"
        judgements = [sample["avg"]["judgements"][0] for sample in run.samples(task)]
        means = [
            fmean(
                sum(number * share for number, share in judgement["distributions"][name])
                for judgement in judgements
            )
            for name in DIMENSIONS
        ]
        results = run.results[task]
        assert [results[f"{name},none"] for name in DIMENSIONS] == pytest.approx(means)
        assert results["avg,none"] == pytest.approx(fmean(means))
        assert "|scoring:logprobs|unscored:0/12|" in run.signatures[task]
    assert run.results["msvd_eval"]["unscored,none"] == 0
    assert main(["check", str(tmp_path / "out")]) == 0
