"""A whole run of a judge that was verified, and a verification by a whole run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from impostors import honest
from judge_server import JudgeServer
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.task_names import tasks_of
from runs import environment, run_lmms_eval

pytestmark = pytest.mark.cli

BENCHMARKS = ("vdc", "vidcapbench", "vcapsbench", "capquiz", "msvd_eval")


def test_its_fingerprint_is_in_all_signatures_and_its_replies_are_asked_anew(
    tmp_path: Path, bench: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of every benchmark; the recorded run's questions get the same verdicts again."""
    captions = sample_root(tmp_path / "sample") / "vdc" / "captions.jsonl"
    with JudgeServer() as server:
        server.script = honest()
        env = environment(
            tmp_path / "cache",
            LMMS_CAPTIONS_JUDGE="judge",
            LMMS_CAPTIONS_JUDGE_URL=server.url,
            LMMS_CAPTIONS_JUDGE_TEMPERATURE="0",
        )
        for name in (name for name in env if name.startswith("LMMS_CAPTIONS_")):
            bench.setenv(name, env[name])
        assert main(["judge", "verify", "--format", "json"]) == 0
        verified = json.loads(capsys.readouterr().out)["benchmarks"]
        arguments = ("--model", "caption_file", "--model_args", f"path={captions}")
        run = run_lmms_eval(tmp_path / "results", *arguments, "--tasks", "video_captions", env=env)
        for task in tasks_of("video_captions"):
            name = next(name for name in BENCHMARKS if task.startswith(name))
            assert f"|judge-fp:{verified[name]['fingerprint']}|" in run.signatures[task], task
        again = main(["judge", "verify", "--recorded", str(run.output), "--format", "json"])
    recorded = {
        name: part["recorded"]
        for name, part in json.loads(capsys.readouterr().out)["benchmarks"].items()
    }
    # The sample is too small to be sure.
    assert again == 3
    assert set(recorded) == set(BENCHMARKS)
    for name, part in recorded.items():
        assert part["items"] > 0, name
        assert part["different"] == 0, part["examples"]
