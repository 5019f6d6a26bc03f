"""The registry is the one place that names the benchmarks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.registry import BENCHMARKS, modules, tasks_path
from lmms_eval_captions.lmms_eval_tasks.task_names import (
    all_benchmarks,
    benchmark_of_task,
    tasks_of,
)

ROOT: Final = tasks_path().parent
_NAME: Final = re.compile("capquiz|vcapsbench|vidcapbench|msvd|vdc", re.IGNORECASE)
_ROOMS: Final = (
    "judges/protocols",
    "metrics",
    "lmms_eval_tasks/commands/building/kinds",
    "lmms_eval_tasks/commands/building/filters",
)
"""Rooms that hold modules of each benchmark, or of its pipeline."""

KNOWN: Final = {
    "lmms_eval_tasks/registry.py": "names them all",
    "lmms_eval_tasks/commands/cli.py": "shows a command line as an example",
    "lmms_eval_tasks/commands/run.py": "shows a command line as an example",
    "lmms_eval_tasks/run_errors.py": "shows an option as an example",
    "lmms_eval_tasks/commands/settings_in_force.py": "shows a variable that one benchmark has",
    "lmms_eval_tasks/scorer/keywords.py": "has a keyword that one benchmark has",
    "lmms_eval_tasks/commands/check.py": "shows an option as an example",
    "lmms_eval_tasks/commands/stability/notes.py": "names the paper whose rule it follows",
    "lmms_eval_tasks/commands/stability/report.py": "names the paper whose table it prints",
    "lmms_eval_tasks/commands/compare/cli.py": "shows an option as an example",
    "lmms_eval_tasks/commands/compare/gate.py": "shows an option as an example",
    "lmms_eval_tasks/commands/compare/lengths.py": "counts tokens as one benchmark does",
    "lmms_eval_tasks/commands/meta_eval/cli.py": "is MSVD-Eval's own command",
    "lmms_eval_tasks/commands/meta_eval/meta_eval.py": "is MSVD-Eval's own command",
    "lmms_eval_tasks/commands/building/registry.py": "names the kinds that can be built",
    "lmms_eval_tasks/commands/building/card.py": "warns of what one pipeline needs two models for",
    "lmms_eval_tasks/commands/building/clips/cli.py": "names the paper whose lengths it has",
    "lmms_eval_tasks/commands/building/criteria.py": "has the criteria of each paper's people",
    "lmms_eval_tasks/commands/label/built_questions.py": "shows a folder as an example",
    "lmms_eval_tasks/commands/t2v_verify/cli.py": "names the paper whose check it is",
    "judges/settings.py": "reads the variables that two benchmarks have of their own",
    "judges/endpoint/roles.py": "says which tasks show pictures to a judge that cannot see",
    "model_wrappers/auroracap/ratio.py": "holds the paper's ratio of each of VDC's aspects",
}
"""Other modules whose code, not only their docstrings, names a benchmark, and why."""


def _others() -> Iterator[Path]:
    """Modules that are of no benchmark."""
    folders = {benchmark.folder.resolve() for benchmark in all_benchmarks().values()}
    folders |= {ROOT / room for room in _ROOMS}
    for room in ("judges", "lmms_eval_tasks", "metrics", "model_wrappers"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if not folders & set(path.parents):
                yield path


def _names(path: Path) -> set[str]:
    """Identifiers, imports and texts of a module in which a benchmark is named."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # A text that stands alone describes what is above it.
    described = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    names = {
        text
        for node in ast.walk(tree)
        if node not in described
        for _, value in ast.iter_fields(node)
        for text in (value if isinstance(value, list) else [value])
        if isinstance(text, str) and _NAME.search(text)
    }
    return {name[:60] for name in names}


def test_only_the_registry_names_benchmarks() -> None:
    """No other module does, but those that are listed here with their reason."""
    named = {path.relative_to(ROOT).as_posix(): _names(path) for path in _others()}
    assert {path: names for path, names in named.items() if names and path not in KNOWN} == {}
    assert [path for path in KNOWN if not named[path]] == [], "an exception that is none any more"


def test_a_record_is_found_by_each_of_its_tasks() -> None:
    """Names are those of the records' folders and tasks; a name that is none is told."""
    for name, benchmark in all_benchmarks().items():
        assert benchmark.folder.resolve().parent == tasks_path()
        assert benchmark.name == benchmark.source.benchmark == benchmark.folder.name
        assert name.startswith(benchmark.name)
        for task in benchmark.tasks:
            assert benchmark_of_task(task) is benchmark
            assert tasks_of(f" {task},{task}") == [task]
    with pytest.raises(SettingsError, match="'mme' is none of our tasks; expected any of vdc_"):
        benchmark_of_task("mme")
    with pytest.raises(SettingsError, match="expected at least one task"):
        tasks_of(" ,")


def test_a_part_is_found_in_every_folder_that_has_it() -> None:
    """Once, whatever records share the folder; a part that nobody has is none."""
    writers = [module.__name__.split(".")[-2] for module in modules("sample")]
    assert writers == list(dict.fromkeys(path.split(".")[-3] for path in BENCHMARKS.values()))
    assert list(modules("nothing_of_this_name")) == []
