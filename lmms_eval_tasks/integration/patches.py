"""Every change made to lmms-eval 0.7.3, in one table, applied as its modules are imported.

A patch gets the call of a function of lmms-eval and decides what happens before and after it. Extra
arguments pass through. If a function is missing, takes other arguments, or our part fails, the
unpatched function runs and a warning names what is lost: lmms-eval's own results are never at risk.
Patches import what they need when they are called, so other people's tasks start as fast as before.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import wrapt
from loguru import logger

from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.lmms_eval_tasks.registry import other_tasks_paths, tasks_path

_EVALUATOR: Final = "lmms_eval.evaluator"


class Call:
    """One call of a patched function: its arguments by name, its error, and then its result."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self._function = function
        self._bound = inspect.signature(function).bind(*args, **kwargs)
        self._bound.apply_defaults()
        self.arguments = self._bound.arguments
        self.error: Exception | None = None
        self.results: list[Any] = []

    def proceed(self, **changes: object) -> Any:  # noqa: ANN401 - lmms-eval's own
        """Call the function with its arguments, some of them changed, and return its result."""
        self.arguments.update(changes)
        try:
            result = self._function(*self._bound.args, **self._bound.kwargs)
        except Exception as error:
            self.error = error
            raise
        self.results.append(result)
        return result


@dataclass(frozen=True, slots=True)
class Patch:
    """A change to one function of lmms-eval."""

    module: str
    function: str
    """Name within the module, dotted for methods."""
    around: Callable[[Call], Any]
    lost: str
    """Consequence for users if it cannot be applied."""
    may_end_run: bool = False
    """True if it raises errors that are meant to end a run, all of them CaptionsError."""

    def apply(self, module: ModuleType) -> None:
        """Patch the function, once; warn if this version of lmms-eval has none."""
        try:
            owner, name, function = wrapt.resolve_path(module, self.function)
        except AttributeError as error:
            self._warn(error)
            return
        if not hasattr(function, "is_patched"):
            setattr(owner, name, self._patched(function))

    def _patched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def patched(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - lmms-eval's own
            call = None
            try:
                call = Call(function, args, kwargs)
                return self.around(call)
            except Exception as error:
                is_meant = self.may_end_run and isinstance(error, CaptionsError)
                if is_meant or (call and call.error is error):
                    raise
                from lmms_eval_captions.lmms_eval_tasks.judging.this_run import record

                record({"error": self._warn(error)})
            return call.results[-1] if call and call.results else function(*args, **kwargs)

        vars(patched)["is_patched"] = True
        return patched

    def _warn(self, error: Exception) -> str:
        message = (
            f"lmms-eval-captions could not extend {self.function} of lmms-eval ({error!r}): "
            f"{self.lost}"
        )
        logger.warning("{}", message)
        return message


@functools.cache
def install() -> None:
    """Apply every patch to lmms-eval's modules, now or as they are imported."""
    for module in {patch.module: None for patch in PATCHES if patch.module != _EVALUATOR}:
        wrapt.when_imported(module)(apply_patches)


def apply_patches(module: ModuleType) -> None:
    """Apply the patches of one loaded module of lmms-eval."""
    for patch in PATCHES:
        if patch.module == module.__name__:
            patch.apply(module)


def _add_tasks(call: Call) -> object:
    """Search our folder after all others, in every index that holds lmms-eval's own tasks."""
    # The evaluator loads this plug-in while it is being imported itself; it is complete by now.
    if _EVALUATOR in sys.modules:
        apply_patches(sys.modules[_EVALUATOR])
    given = call.arguments["include_path"]
    paths = [given] if isinstance(given, str) else list(given or [])
    if call.arguments["include_defaults"]:
        paths += map(str, (tasks_path(), *other_tasks_paths()))
    return call.proceed(include_path=paths or None)


def _retry_no_missing_data(call: Call) -> object:
    """Retry a download, but not if a file is missing or a setting is wrong."""
    outcome = call.arguments["retry_state"].outcome
    return not isinstance(outcome.exception(), CaptionsError) and call.proceed()


def _show_captions(call: Call) -> object:
    """Show a task's hooks all its captions before the first one is judged."""
    from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_in
    from lmms_eval_captions.lmms_eval_tasks.judging.expected import first_answers

    filtered = call.proceed()
    task = call.arguments["self"]
    hooks = hooks_in(task)
    if hooks is not None and task.instances:
        hooks.see_captions(task.task_docs, first_answers(task.instances))
    return filtered


def _guard_run(call: Call) -> object:
    """End a run early, in one sentence, if its captions could not be judged."""
    from lmms_eval_captions.lmms_eval_tasks.run_guard import guarded

    return guarded(call.proceed, call.arguments)


def _refuse_tasks_early(call: Call) -> object:
    """End a run whose tasks cannot be answered, or judged within the limit, before captioning."""
    from lmms_eval_captions.lmms_eval_tasks.hooks import require_answerable

    arguments = call.arguments
    require_answerable(arguments["lm"], arguments["task_dict"], arguments["limit"])
    return call.proceed()


def _complete_results(call: Call) -> object:
    """Save our part of a run with lmms-eval's results."""
    from lmms_eval_captions.lmms_eval_tasks.results.results_writer import completed
    from lmms_eval_captions.lmms_eval_tasks.results.sample_scores import compared

    results = call.arguments["results"]
    with (
        compared(results),
        completed(call.arguments["self"], results, call.arguments["datetime_str"]),
    ):
        return call.proceed()


def _score_samples(call: Call) -> object:
    """Score the samples of our tasks once their task is aggregated."""
    from lmms_eval_captions.lmms_eval_tasks.results.sample_scores import score_samples
    from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks

    result = call.proceed()
    output = call.arguments["self"]
    benchmark = our_benchmarks().get(output.task_name)
    if benchmark is not None:
        score_samples(benchmark, output.logged_samples)
    return result


def _check_baseline(call: Call) -> object:
    """Check a baseline of our tasks before lmms-eval reads it."""
    from lmms_eval_captions.lmms_eval_tasks.results.sample_scores import baseline_log
    from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks, task_groups

    task = call.arguments["task_name"]
    if task in task_groups():
        return {}, None  # it has no samples to compare
    path = Path(call.arguments["baseline_arg"])
    if task in our_benchmarks() and path.exists():
        return call.proceed(baseline_arg=str(baseline_log(path, task)))
    return call.proceed()


_NO_BASELINE: Final = "do not use --baseline with our tasks"
PATCHES: Final = (
    Patch(
        "lmms_eval.tasks",
        "TaskManager.initialize_tasks",
        _add_tasks,
        'add --include_path "$(lmms-eval-captions tasks-path)" if our tasks are not found; '
        "settings of the judge are checked after captioning, not before",
    ),
    Patch(
        "lmms_eval.tasks",
        "ConfigurableTask.download.retry.retry",
        _retry_no_missing_data,
        "missing data is looked for five times before the run ends",
    ),
    Patch(
        "lmms_eval.tasks",
        "ConfigurableTask.apply_filters",
        _show_captions,
        "the judge is asked even if missing captions make a score impossible",
    ),
    Patch(
        _EVALUATOR,
        "simple_evaluate",
        _guard_run,
        "settings of the judge are checked after captioning, not before",
        may_end_run=True,
    ),
    Patch(
        _EVALUATOR,
        "evaluate",
        _refuse_tasks_early,
        "a task that our captioners cannot answer ends the run after others were captioned",
        may_end_run=True,
    ),
    Patch(
        "lmms_eval.loggers.evaluation_tracker",
        "EvaluationTracker.save_results_aggregated",
        _complete_results,
        "verdicts, breakdowns and the summary of this run are not written",
    ),
    Patch(
        "lmms_eval.evaluator_utils",
        "TaskOutput.calculate_clt_aggregate_metric",
        _score_samples,
        _NO_BASELINE,
    ),
    Patch("lmms_eval.baselines", "load_baseline", _check_baseline, _NO_BASELINE, may_end_run=True),
)
