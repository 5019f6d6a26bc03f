"""Joining lmms-eval: its task index knows ours, and changes of its shape end in a message."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.judges.errors import (
    DataError,
    JudgeStoppedError,
    SettingsError,
    StoreError,
)
from lmms_eval_captions.lmms_eval_tasks import plugin as joining


class _Manager:
    def initialize_tasks(
        self, include_path: list[str] | None = None, include_defaults: bool = True
    ) -> tuple[list[str] | None, bool]:
        return include_path, include_defaults


class _Task:
    class download:  # noqa: N801
        class retry:  # noqa: N801
            retry: Any = None


def _module(manager: type, task: type = _Task) -> types.ModuleType:
    module = types.ModuleType("tasks")
    vars(module).update(TaskManager=manager, ConfigurableTask=task)
    return module


@pytest.mark.parametrize(
    ("given", "defaults", "searched"),
    [
        pytest.param(None, True, ["OURS"], id="plain"),
        pytest.param("mine", True, ["mine", "OURS"], id="one-path"),
        pytest.param(["a", "b"], True, ["a", "b", "OURS"], id="several-paths"),
        pytest.param(["a"], False, ["a"], id="without-defaults"),
        pytest.param(None, False, None, id="nothing-at-all"),
    ],
)
def test_our_folder_is_searched_last(
    given: str | list[str] | None, defaults: bool, searched: list[str] | None
) -> None:
    """A user's own paths come first, and an index without lmms-eval's tasks gets none of ours."""
    manager = type("Manager", (_Manager,), {})
    joining._adapt(_module(manager))
    ours = str(joining.tasks_path())
    expected = searched and [ours if path == "OURS" else path for path in searched]
    assert manager().initialize_tasks(given, include_defaults=defaults) == (expected, defaults)


def test_an_unknown_shape_of_lmms_eval_ends_in_a_message(logged: list[str]) -> None:
    """Where the index cannot be taught, the message names the flag that does it."""
    manager = type("Manager", (), {"initialize_tasks": lambda _, paths: paths})
    joining._adapt(_module(manager))
    joining._adapt(types.ModuleType("empty"))
    assert sum("--include_path" in line for line in logged) == 2


def test_a_module_is_adapted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the entry point is loaded, nothing of lmms-eval is wrapped twice."""
    module, acted = types.ModuleType("a_module"), list[types.ModuleType]()
    monkeypatch.setitem(sys.modules, "a_module", module)
    for _ in range(2):
        joining._when_imported("a_module", acted.append)
    assert acted == [module]


def test_missing_data_is_not_looked_for_five_times() -> None:
    """lmms-eval tries a download again, but not one that says what is missing or set wrong."""
    joining._adapt(_module(type("Manager", (_Manager,), {})))
    again = _Task.download.retry.retry

    class Outcome:
        failed = True

        def __init__(self, error: Exception) -> None:
            self.error = error

        def exception(self) -> Exception:
            return self.error

    state = types.SimpleNamespace()
    for error in (
        DataError("gone"),
        SettingsError("expected one of 1, 3, got '2'"),
        StoreError("cannot be kept"),
        JudgeStoppedError("no price"),
    ):
        state.outcome = Outcome(error)
        assert again(state) is False
    state.outcome = Outcome(OSError("hiccup"))
    assert again(state) is True


def test_every_task_is_found_by_the_real_index() -> None:
    """In a process that starts as lmms-eval does, all our tasks are there, no flag given.

    Nothing of judging is loaded by then: who runs other tasks does not wait for it.
    """
    script = (
        "import lmms_eval.models, sys\n"
        "assert 'lmms_eval.tasks' not in sys.modules\n"
        "import lmms_eval.loggers.evaluation_tracker\n"
        "from lmms_eval.tasks import TaskManager\n"
        "manager = TaskManager(include_defaults=True)\n"
        "assert 'lmms_eval_captions.judges.endpoint' not in sys.modules\n"
        "print(*manager.all_tasks)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    names = set(done.stdout.split())
    yamls = {path.stem for path in joining.tasks_path().rglob("*.yaml")}
    assert yamls
    assert yamls <= names


@pytest.mark.parametrize("path", sorted(joining.tasks_path().rglob("*.yaml")), ids=lambda p: p.stem)
def test_every_yaml_is_named_like_its_task(path: Path) -> None:
    """A file is found by the name of the task or group it defines."""
    first = path.read_text().splitlines()
    assert f"task: {path.stem}" in first or f"group: {path.stem}" in first
