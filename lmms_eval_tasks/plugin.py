"""How the package joins lmms-eval: the models' entry point, which also makes our tasks known.

lmms-eval (0.7.3) has an entry point for models and none for tasks. The one for models is loaded by
the same process before the task index is built, so the index is taught our folder there.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import sys
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from loguru import logger

from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.lmms_eval_tasks.last_screen import say_at_exit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec

    from lmms_eval.api.task import ConfigurableTask
    from lmms_eval.models.registry_v2 import ModelManifest
    from lmms_eval.tasks import TaskManager

_TASKS_MODULE = "lmms_eval.tasks"
_TRACKER_MODULE = "lmms_eval.loggers.evaluation_tracker"
_SCORES_MODULE = "lmms_eval.evaluator_utils"
_BASELINES_MODULE = "lmms_eval.baselines"
_ADAPTED = "_adapted_by_lmms_eval_captions"
"""Name in an adapted module of what was done to it."""
_WRAPPERS = "lmms_eval_captions.model_wrappers"


def tasks_path() -> Path:
    """Folder of our task definitions, as ``--include_path`` takes it."""
    return Path(__file__).resolve().parent


def manifests() -> list[ModelManifest]:
    """Entry point ``lmms_eval.models``: our captioners; teaches lmms-eval our tasks on the way."""
    from lmms_eval.models.registry_v2 import ModelManifest

    say_at_exit()
    _when_imported(_TASKS_MODULE, _adapt)
    _when_imported(_TRACKER_MODULE, _adapt_tracker)
    _when_imported(_SCORES_MODULE, _adapt_scores)
    _when_imported(_BASELINES_MODULE, _adapt_baselines)
    custom = ModelManifest(
        model_id="caption_custom",
        simple_class_path=f"{_WRAPPERS}.caption_custom.CaptionCustom",
    )
    return [
        custom,
        *(
            ModelManifest(
                model_id=name,
                simple_class_path=f"{_WRAPPERS}.{name}.{class_name}",
                chat_class_path=f"{_WRAPPERS}.{name}.{class_name}Chat",
            )
            for name, class_name in (
                ("caption_file", "CaptionFile"),
                ("caption_baseline", "CaptionBaseline"),
                ("caption_hf", "CaptionHf"),
                ("caption_openai", "CaptionOpenai"),
                ("caption_auroracap", "CaptionAuroraCap"),
            )
        ),
    ]


def _adapt(tasks: ModuleType) -> None:
    """Teach a loaded ``lmms_eval.tasks`` our folder, or say what to do where that fails."""
    _adapt_filters(tasks)
    try:
        _add_search_path(tasks.TaskManager)
        _report_missing_data_at_once(tasks.ConfigurableTask)
    except (AttributeError, TypeError, ValueError) as error:
        logger.warning(
            "lmms-eval-captions does not know this version of lmms-eval ({}); its tasks are found "
            'with --include_path "$(lmms-eval-captions tasks-path)"',
            error,
        )


def _adapt_filters(tasks: ModuleType) -> None:
    """Have our hooks see a task's captions together, or say that they do not."""
    try:
        _show_captions(tasks.ConfigurableTask)
    except AttributeError as error:
        logger.warning(
            "lmms-eval-captions does not know how this version of lmms-eval filters answers ({}); "
            "the judge is asked also where missing captions leave no score possible",
            error,
        )


def _adapt_tracker(trackers: ModuleType) -> None:
    """Have our part of a run saved with lmms-eval's, or say that it is not."""
    from lmms_eval_captions.lmms_eval_tasks import baseline, run_end

    try:
        run_end.wrap_tracker(trackers)
        baseline.wrap_tracker(trackers)
    except AttributeError as error:
        logger.warning(
            "lmms-eval-captions does not know how this version of lmms-eval saves results ({}); "
            "breakdowns and the summary are not written",
            error,
        )


def _adapt_scores(evaluator_utils: ModuleType) -> None:
    """Have samples scored for ``--baseline``, or say that they are not."""
    from lmms_eval_captions.lmms_eval_tasks.sample_scores import wrap_task_output

    try:
        wrap_task_output(evaluator_utils)
    except AttributeError as error:
        _warn_of_baseline(error)


def _adapt_baselines(baselines: ModuleType) -> None:
    """Have baselines checked, or say that they are not."""
    from lmms_eval_captions.lmms_eval_tasks.baseline import wrap_loader

    try:
        wrap_loader(baselines)
    except AttributeError as error:
        _warn_of_baseline(error)


def _warn_of_baseline(error: AttributeError) -> None:
    logger.warning(
        "lmms-eval-captions does not know how this version of lmms-eval compares runs ({}); do "
        "not use its --baseline with our tasks",
        error,
    )


def _add_search_path(manager: type[TaskManager]) -> None:
    """Make every task index that holds lmms-eval's own tasks hold ours too, after all others."""
    original = manager.initialize_tasks
    parameters = inspect.signature(original).parameters
    if not {"include_path", "include_defaults"} <= set(parameters):
        raise TypeError(f"TaskManager.initialize_tasks takes {list(parameters)}")

    @functools.wraps(original)
    def initialize_tasks(
        self: object, include_path: str | list[str] | None = None, include_defaults: bool = True
    ) -> object:
        # Whoever makes an index has loaded what evaluates.
        from lmms_eval_captions.lmms_eval_tasks.run_errors import ERROR_NOTES
        from lmms_eval_captions.lmms_eval_tasks.run_guard import guard_evaluator

        guard_evaluator()
        ERROR_NOTES.listen()
        given = [include_path] if isinstance(include_path, str) else list(include_path or [])
        ours = [str(tasks_path())] if include_defaults else []
        return original(self, include_path=given + ours or None, include_defaults=include_defaults)

    manager.initialize_tasks = initialize_tasks


def _report_missing_data_at_once(task: type[ConfigurableTask]) -> None:
    """Missing data does not appear on a second look: do not let lmms-eval try five times.

    A setting that cannot be used, or a folder that cannot be written to, does not mend itself,
    either, and tried again it is hidden by the error of the trying.
    """
    from tenacity import retry_if_not_exception_type

    once = retry_if_not_exception_type(CaptionsError)
    task.download.retry.retry = once


def _show_captions(task: type[ConfigurableTask]) -> None:
    """Show a task's hooks all its captions before the first one is judged."""
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


def _when_imported(name: str, act: Callable[[ModuleType], None]) -> None:
    """Call ``act`` with a module now, or when it is first imported.

    Importing it here would cost everyone who only lists models ten seconds.
    """
    module = sys.modules.get(name)
    if module is not None:
        _act_once(module, act)
    elif not any(isinstance(finder, _Finder) and finder.name == name for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(name, act))


def _act_once(module: ModuleType, act: Callable[[ModuleType], None]) -> None:
    """Adapt a module that was not adapted so before."""
    adapted = vars(module).setdefault(_ADAPTED, [])
    if act not in adapted:
        adapted.append(act)
        act(module)


class _Finder(MetaPathFinder):
    """Finds one module as usual, acts on it once it is loaded, and leaves."""

    def __init__(self, name: str, act: Callable[[ModuleType], None]) -> None:
        self.name = name
        self._act = act

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _ActingLoader(spec.loader, self._act)
        return spec


class _ActingLoader(Loader):
    def __init__(self, loader: Loader, act: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._act = act

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _act_once(module, self._act)
