"""``score FILES --tasks`` with a judge behind an endpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from conftest import ServerFactory
from scorers import yes_no


def test_the_summary_is_printed_once(serve: ServerFactory, tmp_path: Path) -> None:
    """Counting the judge's tokens imports lmms-eval, at whose end runs are printed, too."""
    server = serve(latency_s=0.0)
    questions = [f"action*{each['question']}*yes" for each in yes_no(2)]
    (tmp_path / "data/vcapsbench").mkdir(parents=True)
    row = {"video_id": "a.mp4", "qa": questions}
    (tmp_path / "data/vcapsbench/VCapsBench_100KQA.jsonl").write_text(json.dumps(row))
    (tmp_path / "captions.jsonl").write_text('{"video_id": "a.mp4", "caption": "A dog."}\n')
    done = subprocess.run(
        [
            sys.executable, "-m", "lmms_eval_captions.cli.main", "score", "captions.jsonl",
            "--tasks", "vcapsbench", "-o", "results", "--judge", "judge", "--judge-url", server.url,
        ],
        env={
            **os.environ,
            "LMMS_CAPTIONS_DATA": str(tmp_path / "data"),
            "LMMS_CAPTIONS_CACHE": str(tmp_path / "cache"),
        },
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert server.counts.n_requests == 6
    assert done.stdout.count("Captions of captions.jsonl") == 1, done.stdout
