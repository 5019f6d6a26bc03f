"""Benchmarks, tasks and groups by the names that users give them."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, read_plain_yaml
from lmms_eval_captions.lmms_eval_tasks.registry import benchmark_paths, tasks_path


@cache
def all_benchmarks() -> Mapping[str, Benchmark[Any, Any]]:
    """Return every benchmark by its name."""
    found = {}
    for name, path in benchmark_paths().items():
        module, _, attribute = path.rpartition(".")
        try:
            found[name] = getattr(importlib.import_module(module), attribute)
        except Exception as error:
            if path.startswith("lmms_eval_captions."):
                raise
            # Of another package: it costs itself and nothing else.
            logger.warning("the benchmark {} ({}) cannot be used: {!r}", name, path, error)
    return found


@cache
def our_benchmarks() -> Mapping[str, Benchmark[Any, Any]]:
    """Return every task with its benchmark."""
    return {task: benchmark for benchmark in all_benchmarks().values() for task in benchmark.tasks}


def benchmark_of_task(name: str) -> Benchmark[Any, Any]:
    """Return the benchmark of a task.

    Raises:
        SettingsError: If there is no such task.
    """
    benchmarks = our_benchmarks()
    if name not in benchmarks:
        raise SettingsError(
            f"{name!r} is none of our tasks; expected any of {', '.join(benchmarks)}"
        )
    return benchmarks[name]


def known_names() -> list[str]:
    """Return all groups and tasks of ours."""
    return [*task_groups(), *our_benchmarks()]


def tasks_of(names: str) -> list[str]:
    """Return the tasks in a comma-separated list of tasks and groups, each once.

    Raises:
        SettingsError: If a name is not known.
    """
    groups, known = task_groups(), known_names()
    chosen: dict[str, None] = {}
    for name in filter(None, (name.strip() for name in names.split(","))):
        if name not in known:
            close = get_close_matches(name, known, n=1)
            meant = f"was {close[0]} meant?" if close else f"expected any of {', '.join(groups)},"
            raise SettingsError(
                f"--tasks: {name!r:.80} is none of ours; {meant} `lmms-eval --tasks list` shows all"
            )
        chosen.update(dict.fromkeys(groups.get(name, (name,))))
    if not chosen:
        raise SettingsError(
            "--tasks: expected at least one task, got none; `lmms-eval --tasks list` shows all"
        )
    return list(chosen)


def task_groups() -> dict[str, tuple[str, ...]]:
    """Return each group with its tasks, also those of the groups in it, by the YAML files."""
    folders = dict.fromkeys(benchmark.folder for benchmark in all_benchmarks().values())
    members: dict[str, list[str]] = {}
    for folder in (*folders, tasks_path()):
        members.update(_groups_in(folder))
    return {group: tuple(leaves_of({"group_subtasks": members}, group)) for group in members}


def leaves_of(results: Mapping[str, Any], name: str, around: Collection[str] = ()) -> list[str]:
    """Return the tasks of a group and of the groups in it, each once, or the task itself.

    A group may be in itself (``around``), as files may have been edited.

    >>> leaves_of({"group_subtasks": {"all": ["a", "some"], "some": ["b", "a"]}}, "all")
    ['a', 'b']
    >>> leaves_of({"group_subtasks": {"all": ["all", "a"]}}, "all")
    ['a']
    """
    members = results.get("group_subtasks", {}).get(name)
    if not members:
        return [name]
    inside = {*around, name}
    leaves = (leaves_of(results, member, inside) for member in members if member not in inside)
    return list(dict.fromkeys(chain.from_iterable(leaves)))


@cache
def _groups_in(folder: Path) -> Mapping[str, list[str]]:
    # A look for the key first: parsing the files of all tasks takes a tenth of a second.
    paths = (path for path in sorted(folder.glob("*.yaml")) if "group:" in path.read_text("utf-8"))
    files = map(read_plain_yaml, paths)
    return {file["group"]: file["task"] for file in files if "group" in file}
