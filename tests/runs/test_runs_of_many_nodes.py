"""Captioning over several nodes, from the command lines of ``docs/many-nodes.md`` to the scores."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from runs import environment, run_lmms_eval

pytestmark = pytest.mark.nightly

_CAPTIONER = ("--model", "caption_baseline", "--tasks", "vdc_score")
_JUDGED = ("--model", "caption_file", "--tasks", "vdc_score", "--model_args")


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
    return port


def _caption_on_nodes(folder: Path, caches: tuple[Path, Path]) -> list[str]:
    """Two launchers of two processes each, as two nodes have them; what each of them said."""
    meeting = ("--master_addr", "127.0.0.1", "--master_port", str(_free_port()))
    logs = [folder / f"log-{node}.txt" for node in range(2)]
    with ExitStack() as stack:
        nodes = []
        for node, (cache, log) in enumerate(zip(caches, logs, strict=True)):
            place = ("--nnodes", "2", "--node_rank", str(node), "--nproc_per_node", "2")
            output = ("--output_path", str(folder / f"captions-{node}"))
            run = ("-m", "lmms_eval", *_CAPTIONER, "--predict_only", *output)
            started = subprocess.Popen(
                [sys.executable, "-m", "torch.distributed.run", *place, *meeting, *run],
                env=environment(cache),
                stdout=stack.enter_context(log.open("w")),
                stderr=subprocess.STDOUT,
                cwd=folder,
            )
            stack.callback(started.kill)
            nodes.append(started)
        codes = [node.wait(timeout=600) for node in nodes]
    said = [log.read_text() for log in logs]
    assert codes == [0, 0], "\n".join(said)
    return said


def _rows(folder: Path) -> list[tuple[str, str]]:
    lines = [line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    rows = [json.loads(line) for line in lines]
    return [(row["task"], row["video_id"]) for row in rows]


def test_captions_of_two_nodes_are_joined_and_scored_as_those_of_one_process(
    tmp_path: Path,
) -> None:
    """A cache for each node: every caption once, equal scores, and a node that is missing is said.

    The folder of sample logs, which the first node writes, holds the captions of all nodes.
    """
    caches = (tmp_path / "node-0", tmp_path / "node-1")
    said = _caption_on_nodes(tmp_path, caches)
    folders = [next((cache / "captions").iterdir()) for cache in caches]
    assert folders[0].name == folders[1].name, "the nodes have one name for the run"
    for node, folder in enumerate(folders):
        names = sorted(path.name for path in folder.iterdir())
        assert names == [f"rank-{2 * node + local}-of-4.jsonl" for local in range(2)]
        assert said[node].count(f"captions are saved to {folder} ") == 1
    rows = Counter(row for folder in folders for row in _rows(folder))
    assert len(rows) == 60
    assert set(rows.values()) == {1}

    def judged(name: str, path: str) -> dict[str, float]:
        env = environment(tmp_path / f"cache-{name}", LMMS_CAPTIONS_JUDGE="lexical")
        return run_lmms_eval(tmp_path / name, *_JUDGED, f"path={path}", env=env).scores()

    env = environment(tmp_path / "one", LMMS_CAPTIONS_JUDGE="lexical")
    alone = run_lmms_eval(tmp_path / "alone", *_CAPTIONER, env=env).scores()
    assert len(alone) == 12
    assert judged("joined", "+".join(map(str, folders))) == alone
    assert judged("logged", str(tmp_path / "captions-0")) == alone
    assert not (tmp_path / "captions-1").exists()

    env = environment(tmp_path / "cache-half", LMMS_CAPTIONS_JUDGE="lexical")
    half = run_lmms_eval(tmp_path / "half", *_JUDGED, f"path={folders[0]}", env=env)
    assert not half.output.exists() or not list(half.output.glob("*_results.json"))
    *_, last = half.log.strip().splitlines()
    assert "30 of 60 captions are missing" in last
    assert "(of 4 processes that captioned, 2 have no file there: rank 2, 3)" in last
