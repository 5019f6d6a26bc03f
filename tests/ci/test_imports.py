"""The import contract of pyproject.toml: it is complete, and each of its rules can fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

api = pytest.importorskip("importlinter.api", reason="import-linter needs Python 3.11")

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "analysis", "cli", "construction", "judges", "lmms_eval_tasks", "metrics", "model_wrappers",
    "scorer",
    "verification",
)  # fmt: skip
PACKAGE = "lmms_eval_captions"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of our modules under their names, and of the contract."""
    root = tmp_path_factory.mktemp("tree")
    for folder in FOLDERS:
        left_out = shutil.ignore_patterns("__pycache__", "stub", "prompts")
        shutil.copytree(ROOT / folder, root / PACKAGE / folder, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


def _lint(root: Path) -> subprocess.CompletedProcess[str]:
    line = (Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo")
    env = {**os.environ, "PYTHONPATH": str(root), "COLUMNS": "200"}
    return subprocess.run(line, cwd=root, env=env, capture_output=True, text=True, check=False)


def test_the_contract_is_kept(tree: Path) -> None:
    """No module of ours breaks it."""
    done = _lint(tree)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "imported", "rule"),
    [
        pytest.param("metrics.capquiz", "model_wrappers.results", "Arrows", id="arrow"),
        pytest.param("metrics.capquiz", "judges.errors", "metrics see the labels", id="metrics"),
        pytest.param(
            "model_wrappers.results", "judges.settings", "model wrappers see", id="wrappers"
        ),
        pytest.param(
            "judges.endpoint.limits", "judges.settings", "The endpoint knows", id="endpoint"
        ),
        pytest.param(
            "lmms_eval_tasks.capquiz.benchmark",
            "lmms_eval_tasks.vdc.classic",
            "another",
            id="benchmarks",
        ),
        pytest.param("judges.errors", "lmms_eval", "neither lmms-eval nor", id="lmms-eval"),
        pytest.param("judges.files", "judges.endpoint.urls", "No circle", id="circle"),
    ],
)
def test_what_breaks_a_rule_is_found(tree: Path, module: str, imported: str, rule: str) -> None:
    """An import against the rules fails the check by name, also one for type checkers alone."""
    file = (tree / PACKAGE / module.replace(".", "/")).with_suffix(".py")
    source = file.read_text(encoding="utf-8")
    name = imported if imported == "lmms_eval" else f"{PACKAGE}.{imported}"
    planted = f"\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import {name}\n"
    file.write_text(source + planted, encoding="utf-8")
    try:
        done = _lint(tree)
    finally:
        file.write_text(source, encoding="utf-8")
    assert done.returncode == 1, done.stdout
    assert [line for line in done.stdout.splitlines() if rule in line and "BROKEN" in line]
    assert module.rpartition(".")[2] in done.stdout


def test_every_benchmark_is_in_the_contract() -> None:
    """A folder with tasks is one of those that do not import each other."""
    folders = {file.parent.name for file in ROOT.glob("lmms_eval_tasks/*/_default_template_yaml")}
    contracts = api.read_configuration(str(ROOT / "pyproject.toml"))["contracts_options"]
    [modules] = [rule["modules"] for rule in contracts if rule["type"] == "independence"]
    assert {name.rpartition(".")[2] for name in modules} == folders
