"""All that is changed in lmms-eval, function by function; :mod:`plugin` does it as modules load.

Each takes a module of lmms-eval 0.7.3, wraps one step of it, and raises ``AttributeError`` where
this version has no such step; ``plugin`` does each once. Everybody pays for what is imported here,
also who runs other tasks: a wrapper imports what it does when its step is taken.
"""

from __future__ import annotations

import functools
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.lmms_eval_tasks.run_errors import ERROR_NOTES

if TYPE_CHECKING:
    from types import ModuleType

EVALUATOR: Final = "lmms_eval.evaluator"


def add_search_path(tasks: ModuleType, path: str) -> None:
    """Make every task index that holds lmms-eval's own tasks hold ours too, after all others.

    Args:
        tasks: ``lmms_eval.tasks``.
        path: Folder of our task definitions.

    Raises:
        TypeError: If an index is made otherwise in this version.
    """
    manager = tasks.TaskManager
    original = manager.initialize_tasks
    parameters = inspect.signature(original).parameters
    if not {"include_path", "include_defaults"} <= set(parameters):
        raise TypeError(f"TaskManager.initialize_tasks takes {list(parameters)}")

    @functools.wraps(original)
    def initialize_tasks(
        self: object, include_path: str | list[str] | None = None, include_defaults: bool = True
    ) -> object:
        # Whoever makes an index has loaded what evaluates.
        guard_evaluator()
        ERROR_NOTES.listen()
        given = [include_path] if isinstance(include_path, str) else list(include_path or [])
        ours = [path] if include_defaults else []
        return original(self, include_path=given + ours or None, include_defaults=include_defaults)

    manager.initialize_tasks = initialize_tasks


def report_missing_data_at_once(tasks: ModuleType) -> None:
    """Missing data does not appear on a second look: do not let lmms-eval try five times.

    A setting that cannot be used, or a folder that cannot be written to, does not mend itself,
    either, and tried again it is hidden by the error of the trying.

    Args:
        tasks: ``lmms_eval.tasks``.
    """
    from tenacity import retry_if_not_exception_type

    once = retry_if_not_exception_type(CaptionsError)
    tasks.ConfigurableTask.download.retry.retry = once


def show_captions(tasks: ModuleType) -> None:
    """Show a task's hooks all its captions before the first one is judged.

    Args:
        tasks: ``lmms_eval.tasks``.
    """
    task = tasks.ConfigurableTask
    original = task.apply_filters

    @functools.wraps(original)
    def apply_filters(self: Any) -> object:  # noqa: ANN401 - lmms-eval's own
        from lmms_eval_captions.lmms_eval_tasks.hooks import Hooks
        from lmms_eval_captions.lmms_eval_tasks.known_shares import first_answers

        filtered = original(self)
        # There is no such hook where nothing is judged (--predict_only).
        hooks = getattr(self.config.process_results, "__self__", None)
        if isinstance(hooks, Hooks) and self.instances:
            hooks.see_captions(self.task_docs, first_answers(self.instances))
        return filtered

    task.apply_filters = apply_filters


def guard_evaluator() -> None:
    """Have what cannot be judged end a run early, once, where lmms-eval's evaluator is loaded."""
    evaluator = sys.modules.get(EVALUATOR)
    original = getattr(evaluator, "simple_evaluate", None)
    if evaluator is None or original is None or hasattr(original, "is_guarded"):
        return

    @functools.wraps(original)
    def simple_evaluate(*args: object, **kwargs: object) -> object:
        from lmms_eval_captions.lmms_eval_tasks.run_guard import guarded

        return guarded(original, *args, **kwargs)

    vars(simple_evaluate)["is_guarded"] = True
    vars(evaluator)["simple_evaluate"] = simple_evaluate
    _refuse_tasks_early(evaluator)


def _refuse_tasks_early(evaluator: ModuleType) -> None:
    """Have tasks that a captioner of ours cannot answer named before the others are captioned.

    lmms-eval sends one kind of requests after the other: the refusal of the second would lose the
    results of the first.
    """
    original = getattr(evaluator, "evaluate", None)
    if original is None:
        return

    @functools.wraps(original)
    def evaluate(*args: object, **kwargs: object) -> object:
        from lmms_eval_captions.lmms_eval_tasks.run_guard import require_answerable

        require_answerable(kwargs.get("lm"), kwargs.get("task_dict"))
        return original(*args, **kwargs)

    vars(evaluator)["evaluate"] = evaluate


def complete_results(trackers: ModuleType) -> None:
    """Have what is ours saved with lmms-eval's results, and the table say what was compared.

    Args:
        trackers: ``lmms_eval.loggers.evaluation_tracker``.
    """
    tracker = trackers.EvaluationTracker
    original = tracker.save_results_aggregated

    @functools.wraps(original)
    def save_results_aggregated(
        self: Any,  # noqa: ANN401 - lmms-eval's own
        results: dict[str, Any],
        samples: dict[str, Any],
        datetime_str: str,
    ) -> None:
        from lmms_eval_captions.lmms_eval_tasks.baseline import compared
        from lmms_eval_captions.lmms_eval_tasks.run_end import completed

        with compared(results), completed(self, results, datetime_str):
            original(self, results=results, samples=samples, datetime_str=datetime_str)

    tracker.save_results_aggregated = save_results_aggregated


def score_samples(evaluator_utils: ModuleType) -> None:
    """Have the samples of our tasks scored once their task is aggregated.

    Args:
        evaluator_utils: ``lmms_eval.evaluator_utils``.
    """
    output = evaluator_utils.TaskOutput
    original = output.calculate_clt_aggregate_metric

    @functools.wraps(original)
    def calculate_clt_aggregate_metric(self: Any) -> None:  # noqa: ANN401 - lmms-eval's own
        from lmms_eval_captions.lmms_eval_tasks.sample_scores import note_documents, score_samples
        from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks

        original(self)
        benchmark = our_benchmarks().get(self.task_name)
        if benchmark is not None:
            score_samples(benchmark, self.logged_samples)
            note_documents(self.task_name, benchmark, self.logged_samples)

    output.calculate_clt_aggregate_metric = calculate_clt_aggregate_metric


def check_baselines(baselines: ModuleType) -> None:
    """Have baselines of our tasks checked before lmms-eval reads them.

    Args:
        baselines: ``lmms_eval.baselines``.
    """
    original = baselines.load_baseline

    @functools.wraps(original)
    def load_baseline(baseline_arg: str, task_name: str) -> Any:  # noqa: ANN401 - lmms-eval's own
        from lmms_eval_captions.lmms_eval_tasks.baseline import baseline_log
        from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks, task_groups

        if task_name in task_groups():
            return {}, None  # it has no samples to compare
        path = Path(baseline_arg)
        if task_name in our_benchmarks() and path.exists():
            return original(str(baseline_log(path, task_name)), task_name)
        return original(baseline_arg, task_name)

    vars(baselines).update(load_baseline=load_baseline)
