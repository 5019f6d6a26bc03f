"""Joining lmms-eval: every task is found and every patch applied, with no flag given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval_captions.lmms_eval_tasks.registry import tasks_path

SCRIPT = """
import importlib.resources, importlib.util, sys
import lmms_eval.models
assert "lmms_eval.tasks" not in sys.modules
assert importlib.util.find_spec("lmms_eval.tasks").origin.endswith("__init__.py")
import lmms_eval.evaluator
from lmms_eval.tasks import TaskManager
manager = TaskManager(include_defaults=True)
assert "lmms_eval_captions.judges.endpoint" not in sys.modules
assert (importlib.resources.files("lmms_eval.tasks") / "vdc").is_dir()
from lmms_eval_captions.lmms_eval_tasks.integration.patches import PATCHES
for patch in PATCHES:
    function = sys.modules[patch.module]
    for name in patch.function.split("."):
        function = getattr(function, name)
    assert function.is_patched, patch
assert lmms_eval.evaluator.load_baseline.is_patched
print(*manager.all_tasks)
"""


def test_every_task_is_found_and_every_patch_applied_in_a_real_process() -> None:
    """Nothing of judging is loaded by then, so people who run other tasks don't wait for it.

    A look at ``lmms_eval.tasks`` before its import does not use the hook up, and its files stay
    readable as resources.
    """
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "could not extend" not in done.stderr
    names = set(done.stdout.split())
    yamls = {path.stem for path in tasks_path().rglob("*.yaml")}
    assert yamls
    assert yamls <= names


@pytest.mark.parametrize("path", sorted(tasks_path().rglob("*.yaml")), ids=lambda p: p.stem)
def test_every_yaml_is_named_like_its_task(path: Path) -> None:
    """A file is found by the name of the task or group it defines."""
    first = path.read_text().splitlines()
    assert f"task: {path.stem}" in first or f"group: {path.stem}" in first
