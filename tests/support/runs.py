"""Whole runs of lmms-eval for tests: started as a user starts them, their results read back."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval_captions.analysis.results_folder import RunResults, read_all_results
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from warm_lmms_eval import run_warm


@dataclass(frozen=True)
class Run:
    """A finished run."""

    output: Path
    log: str
    returncode: int

    @property
    def newest(self) -> RunResults:
        """The newest results file."""
        runs = [run for of_model in read_all_results(self.output) for run in of_model]
        return max(runs, key=lambda run: run.path)

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """``results`` of the newest results file."""
        return {name: dict(task.metrics) for name, task in self.newest.tasks.items()}

    @property
    def signatures(self) -> dict[str, str]:
        """The signature of each task and group of ours in the newest results file."""
        tasks = self.newest.tasks.items()
        return {name: str(task.signature) for name, task in tasks if task.signature is not None}

    @property
    def document(self) -> dict[str, Any]:
        """The newest results file, whole."""
        return dict(self.newest.document)

    def samples(self, task: str) -> list[dict[str, Any]]:
        """The newest run's sample log of a task."""
        return list(self.newest.samples(task))

    def breakdown(self, task: str) -> dict[str, Any]:
        """The newest run's breakdown of a task, which must be there."""
        breakdown = self.newest.breakdown(task)
        assert breakdown is not None, f"no breakdown of {task}"
        return breakdown

    def scores(self, metrics: Sequence[str] = ("vdc_acc", "vdc_score")) -> dict[str, float]:
        """The numbers of all tasks and groups."""
        return {
            f"{task} {metric}": values[f"{metric},none"]
            for task, values in self.results.items()
            for metric in metrics
            if f"{metric},none" in values
        }


def command(arguments: Sequence[str], *, n_processes: int = 1) -> list[str]:
    """The command line of a run."""
    if n_processes == 1:
        return [sys.executable, "-m", "lmms_eval", *arguments]
    # Standalone takes any free port: runs beside each other must not meet.
    launcher = ["torch.distributed.run", "--standalone", "--nproc_per_node", str(n_processes)]
    return [sys.executable, "-m", *launcher, "-m", "lmms_eval", *arguments]


@functools.cache
def _sample() -> Path:
    """The sample, rendered once per test process: that takes as long as many a run."""
    folder = Path(tempfile.mkdtemp(prefix="sample-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return sample_root(folder)


def environment(cache: Path, **variables: str) -> dict[str, str]:
    """The environment of a run that touches nothing of the user's, with a rendered sample."""
    sample = _sample()
    if not (cache / sample.name).exists():
        shutil.copytree(sample, cache / sample.name)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LMMS_", "OPENAI_"))}
    ours = {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_CACHE": str(cache / "datasets"),
        "LMMS_CAPTIONS_CACHE": str(cache),
        "LMMS_CAPTIONS_DATA": "sample",
        "ACCELERATE_USE_CPU": "true",
        "TOKENIZERS_PARALLELISM": "false",
    }
    return {**kept, **ours, **variables}


def run_lmms_eval(
    output: Path,
    *arguments: str,
    env: Mapping[str, str],
    n_processes: int = 1,
    timeout_s: float = 900.0,
    fresh: bool = False,
) -> Run:
    """Run lmms-eval to its end.

    Args:
        output: Where its results go.
        arguments: Further arguments.
        env: Its environment, whole.
        n_processes: Ranks.
        timeout_s: It is killed after so long.
        fresh: Start an interpreter, as a user does, and not a copy of one that has imported all.
    """
    line = [*arguments, "--output_path", str(output), "--log_samples"]
    if n_processes == 1 and not fresh:
        warm = run_warm(line, env=env, cwd=output.parent, timeout_s=timeout_s)
        return Run(output, warm.log, warm.returncode)
    done = subprocess.run(
        command(line, n_processes=n_processes),
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        cwd=output.parent,
    )
    return Run(output, done.stdout + done.stderr, done.returncode)
