"""All processes of a run call it by one name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed

from lmms_eval_captions.model_wrappers.run_name import run_name

_NAME = (
    "from lmms_eval_captions.model_wrappers.run_name import run_name; run = run_name(); "
    "print(run.name, run.rank, run.is_shared)"
)


def test_one_process_has_a_name_of_its_own() -> None:
    """It says when the run was."""
    run = run_name({})
    assert run.name.endswith(f"-{os.getpid()}")
    assert (run.rank, run.world_size, run.is_shared) == (0, 1, True)


def test_processes_of_several_nodes_agree_where_they_met() -> None:
    """The name is that of the process that asked first, which waits for nobody."""
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    try:
        first, second = (
            run_name({"RANK": rank, "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"})
            for rank in ("8", "0")
        )
    finally:
        torch.distributed.destroy_process_group()
    assert first.name == second.name
    assert (first.rank, second.rank) == (8, 0)
    assert first.is_shared
    assert second.is_shared


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="a system without /proc")
def test_processes_of_one_launcher_have_one_name() -> None:
    """On one node the launcher is enough; another launch has another name."""
    names = []
    for _ in range(2):
        launcher = (
            "import os, subprocess, sys\n"
            "for rank in '01':\n"
            "    env = os.environ | {'RANK': rank, 'WORLD_SIZE': '2', 'LOCAL_WORLD_SIZE': '2'}\n"
            f"    subprocess.run([sys.executable, '-c', {_NAME!r}], env=env, check=True)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", launcher], capture_output=True, text=True, check=True
        )
        rows = [line.split() for line in done.stdout.splitlines()]
        assert [row[1:] for row in rows] == [["0", "True"], ["1", "True"]]
        assert rows[0][0] == rows[1][0]
        names.append(rows[0][0])
    assert names[0] != names[1]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="a system without /proc")
def test_runs_of_one_launcher_differ() -> None:
    """A second configuration is another run, and so is one that an elastic launcher began anew."""
    ranks = [{"RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"} for rank in "01"]
    anew = [{**rank, "TORCHELASTIC_RESTART_COUNT": "1"} for rank in ranks]
    runs = [(ranks, 1), (ranks, 2), (anew, 1), (anew, 2)]
    names = [{run_name(env, number=number).name for env in envs} for envs, number in runs]
    assert all(len(of_run) == 1 for of_run in names)
    assert len(set.union(*names)) == len(runs)
    assert run_name({}, number=2).name.endswith(f"-{os.getpid()}-2")


def test_processes_that_cannot_agree_say_so() -> None:
    """Several nodes, and nothing through which they met: a name each."""
    run = run_name({"RANK": "3", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"})
    assert (run.rank, run.is_shared) == (3, False)
    assert run.name.endswith(f"-{os.getpid()}")


def test_a_process_knows_its_place_on_its_node() -> None:
    """Who is the first one of a node, and whether there are others, is the launcher's word."""
    first = run_name({"RANK": "8", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8", "LOCAL_RANK": "0"})
    assert (first.rank, first.local_rank, first.has_nodes) == (8, 0, True)
    alone = run_name({"RANK": "3", "WORLD_SIZE": "8"})
    assert (alone.rank, alone.local_rank, alone.has_nodes) == (3, 3, False)


def test_the_name_says_on_which_machine_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers with the same process numbers, started in one second, do not share a file."""
    names = []
    for host in ("node-1", "node/2"):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        names.append(run_name({}).name)
    assert "-node-1-" in names[0]
    assert "/" not in names[1]
