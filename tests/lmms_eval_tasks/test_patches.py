"""Patches of lmms-eval: what they do, and that no other version of it breaks a run."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import lmms_eval.evaluator  # noqa: F401 - resets all log sinks: not within a test that reads them
import pytest
from loguru import logger

from ended_runs import STAMP, Tracker, results_of
from lmms_eval_captions.judges.errors import DataError, SettingsError, StoreError
from lmms_eval_captions.lmms_eval_tasks.integration.patches import PATCHES, Call, Patch
from lmms_eval_captions.lmms_eval_tasks.integration.plugin import manifests
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import RUN_RECORD
from lmms_eval_captions.lmms_eval_tasks.registry import tasks_path
from lmms_eval_captions.lmms_eval_tasks.results import results_writer

Arguments = dict[str, Any]

_HIDDEN = SimpleNamespace(process_results=None)
_CONFIG = SimpleNamespace(model_name_sanitized="m", start_time=0.0)
ARGUMENTS: dict[str, Arguments] = {
    "TaskManager.initialize_tasks": {"self": None, "include_path": None, "include_defaults": True},
    "ConfigurableTask.download.retry.retry": {
        "retry_state": SimpleNamespace(outcome=SimpleNamespace(exception=OSError))
    },
    "ConfigurableTask.apply_filters": {"self": SimpleNamespace(config=_HIDDEN, instances=[])},
    "simple_evaluate": {
        "model": "a",
        "predict_only": False,
        "launcher_args": None,
        "verbosity": "INFO",
    },
    "evaluate": {"lm": None, "task_dict": {}},
    "EvaluationTracker.save_results_aggregated": {
        "self": SimpleNamespace(output_path=None, general_config_tracker=_CONFIG),
        "results": {"results": {}},
        "samples": {},
        "datetime_str": STAMP,
    },
    "TaskOutput.calculate_clt_aggregate_metric": {"self": SimpleNamespace(task_name="mme")},
    "load_baseline": {"baseline_arg": "a", "task_name": "mme"},
}
"""Arguments of other people's runs, by patched function."""

every_patch = pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.function)


def _patched(patch: Patch, function: Callable[..., Any]) -> Callable[..., Any]:
    """Patch a stand-in for the function of lmms-eval."""
    *owners, name = patch.function.split(".")
    module = owner = ModuleType(patch.module)
    for part in owners:
        vars(owner)[part] = owner = ModuleType(part)
    vars(owner)[name] = function
    patch.apply(module)
    patch.apply(module)
    patched: Callable[..., Any] = vars(owner)[name]
    return patched


def _real(patch: Patch) -> Callable[..., Any]:
    real: Any = functools.reduce(getattr, patch.function.split("."), sys.modules[patch.module])
    unpatched: Callable[..., Any] = inspect.unwrap(real)
    return unpatched


@every_patch
def test_an_argument_of_a_later_version_passes_through(patch: Patch, logged: list[str]) -> None:
    """Each patch does its part with the real function's parameters and one that is new."""
    calls: list[Arguments] = []

    def function(*args: Any, **kwargs: Any) -> str:
        calls.append(signature.bind(*args, **kwargs).arguments)
        return "result"

    real = inspect.signature(_real(patch))
    new = inspect.Parameter("run_id", inspect.Parameter.KEYWORD_ONLY)
    last = [each for each in real.parameters.values() if each.kind is each.VAR_KEYWORD]
    known = [each for each in real.parameters.values() if each not in last]
    signature = real.replace(parameters=[*known, new, *last])
    vars(function)["__signature__"] = signature
    arguments = ARGUMENTS[patch.function]
    assert _patched(patch, function)(**arguments, run_id=7) == "result"
    assert [call["run_id"] for call in calls] == [7]
    assert arguments.keys() <= calls[0].keys()
    assert not logged


@every_patch
def test_a_function_with_other_parameters_runs_unpatched(patch: Patch) -> None:
    """Once, with what it was given; its own errors stay its own, and are not tried again."""
    calls: list[Arguments] = []

    def function(**renamed: object) -> str:
        calls.append(renamed)
        if "fails" in renamed:
            raise OSError("theirs")
        return "result"

    patched = _patched(patch, function)
    assert patched(other=1) == "result"
    with pytest.raises(OSError, match="theirs"):
        patched(other=1, fails=True)
    assert calls == [{"other": 1}, {"other": 1, "fails": True}]


@pytest.mark.parametrize("is_late", [False, True], ids=["before", "after"])
def test_a_fault_of_ours_costs_nothing_and_repeats_nothing(
    is_late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    """The function runs once, its result is returned, and who started the run learns of it."""
    calls: list[str] = []

    def around(call: Call) -> object:
        if is_late:
            call.proceed()
        raise DataError("a defect")

    def function(text: str) -> str:
        calls.append(text)
        return "result"

    monkeypatch.setenv(RUN_RECORD, str(tmp_path / "record"))
    patch = Patch("lmms_eval.tasks", "function", around, "something is lost")
    assert _patched(patch, function)("a") == "result"
    assert calls == ["a"]
    assert "something is lost" in logged[0]
    assert "something is lost" in (tmp_path / "record").read_text()


def test_an_error_of_the_function_itself_is_raised_once(logged: list[str]) -> None:
    """It is not ours, and trying again would run everything twice."""
    calls: list[str] = []

    def function(text: str) -> None:
        calls.append(text)
        raise OSError("disk full")

    patch = Patch("lmms_eval.tasks", "function", lambda call: call.proceed(), "lost")
    with pytest.raises(OSError, match="disk full"):
        _patched(patch, function)("a")
    assert calls == ["a"]
    assert not logged


@every_patch
def test_a_function_that_is_gone_ends_in_a_warning(patch: Patch, logged: list[str]) -> None:
    """It says what is lost."""
    patch.apply(ModuleType(patch.module))
    assert patch.lost in logged[0]


def test_results_are_saved_by_a_later_version_whatever_fails_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    """Also if what fails raises an error of this package."""
    tracker = Tracker(tmp_path, later_version=True)

    def fail(*_: object, **__: object) -> None:
        raise DataError("cannot be read")

    monkeypatch.setattr(results_writer, "complete", fail)
    assert tracker.save(results_of({}))["results"] == {}
    assert any("cannot be read" in line for line in logged)


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

    def initialize_tasks(
        include_path: list[str] | None = None, include_defaults: bool = True
    ) -> tuple[list[str] | None, bool]:
        return include_path, include_defaults

    patched = _patched(_patch("TaskManager.initialize_tasks"), initialize_tasks)
    ours = str(tasks_path())
    expected = searched and [ours if path == "OURS" else path for path in searched]
    assert patched(given, include_defaults=defaults) == (expected, defaults)
    assert patched(include_path=given, include_defaults=defaults) == (expected, defaults)


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (DataError("gone"), False),
        (SettingsError("expected one of 1, 3, got '2'"), False),
        (StoreError("cannot be kept"), False),
        (OSError("hiccup"), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_missing_data_is_not_looked_for_five_times(error: Exception, again: bool) -> None:
    """lmms-eval retries downloads, which does not help if a file is missing or a setting wrong."""
    state = SimpleNamespace(outcome=SimpleNamespace(exception=lambda: error))
    function = "ConfigurableTask.download.retry.retry"
    retry = _patched(_patch(function), lambda retry_state: retry_state is state)
    assert retry(state) is again


def _patch(function: str) -> Patch:
    return next(patch for patch in PATCHES if patch.function == function)


def test_the_hub_token_is_in_no_log_line(
    monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    """lmms-eval writes one with the arguments of its results tracker."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    manifests()
    logger.info("Evaluation tracker args: {}", {"token": "hf_secret"})
    assert logged[-1].strip() == "INFO Evaluation tracker args: {'token': '[HF_TOKEN]'}"
