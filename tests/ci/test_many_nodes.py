"""The command lines of ``docs/many-nodes.md``, without the nodes: the launchers know them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

from accelerate.commands.launch import launch_command_parser
from torch.distributed.run import get_args_parser

_PAGE = (Path(__file__).parents[2] / "docs" / "many-nodes.md").read_text("utf-8")
_BLOCKS = re.findall(r"^```bash\n(.+?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
_FAKES = {
    "scontrol": 'echo node-a; echo node-b; test "$*" = "show hostnames node-[a-b]"',
    # One task per node, which is what the script's head asks for.
    "srun": 'shift; for SLURM_NODEID in 0 1; do export SLURM_NODEID; "$@"; done',
    "torchrun": 'printf "%s\\t" "$@"; echo',
}


def _line(launcher: str) -> list[str]:
    """The words of the page's line that begins with a launcher, for the second node."""
    nodes = (block for block in _BLOCKS if "$NODE" in block)
    (block,) = (block for block in nodes if re.search(rf"^{launcher} ", block, re.MULTILINE))
    joined = block.replace("\\\n", " ").replace("$NODE", "1").replace("$HEAD", "127.0.0.1")
    (line,) = (line for line in joined.splitlines() if line.startswith(launcher))
    return shlex.split(line)[1:]


def _run(arguments: list[str]) -> dict[str, str]:
    words = [word for word in arguments if word != "--predict_only"]
    return dict(zip(words[::2], words[1::2], strict=True))


def test_the_launchers_read_the_lines() -> None:
    """Node, number of processes and the meeting place are options that they have."""
    torch = get_args_parser().parse_args(_line("torchrun"))
    assert (torch.nnodes, torch.node_rank, torch.nproc_per_node) == ("2", 1, "8")
    assert (torch.master_addr, torch.master_port) == ("127.0.0.1", 29500)
    # Without its first word, "launch".
    accelerate = launch_command_parser().parse_args(_line("accelerate")[1:])
    assert (accelerate.num_machines, accelerate.machine_rank) == (2, 1)
    assert (accelerate.num_processes, accelerate.main_process_port) == (16, 29500)
    assert (torch.training_script, accelerate.training_script) == ("lmms_eval", "lmms_eval")
    assert torch.training_script_args == accelerate.training_script_args
    assert _run(torch.training_script_args)["--tasks"] == "vdc_score"


def test_the_slurm_script_starts_one_launcher_per_node(tmp_path: Path) -> None:
    """Each knows its number, and the first node as the place where all meet."""
    (script,) = (block for block in _BLOCKS if block.startswith("#!/bin/bash"))
    for name, text in _FAKES.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/bash\n{text}\n")
        program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_NNODES": "2"}
    done = subprocess.run(
        ["bash", "-eu"],
        input=script,
        env={**env, "SLURM_JOB_NODELIST": "node-[a-b]"},
        capture_output=True,
        text=True,
        check=True,
    )
    launched = [line.split("\t")[:-1] for line in done.stdout.splitlines()]
    read = [get_args_parser().parse_args(words) for words in launched]
    assert [(node.nnodes, node.node_rank) for node in read] == [("2", 0), ("2", 1)]
    assert {node.master_addr for node in read} == {"node-a"}
    own = get_args_parser().parse_args(_line("torchrun")).training_script_args
    expected = {**_run(own), "--output_path": "/shared/captions"}
    assert all(_run(node.training_script_args) == expected for node in read)
