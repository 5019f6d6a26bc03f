"""How the package joins lmms-eval: the models' entry point, which also makes our tasks known.

lmms-eval (0.7.3) has an entry point for models and none for tasks. The one for models is loaded by
the same process before the task index is built, so the index is taught our folder there.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from loguru import logger

from lmms_eval_captions.lmms_eval_tasks import adaptations
from lmms_eval_captions.lmms_eval_tasks.last_screen import say_at_exit
from lmms_eval_captions.model_wrappers.captioner_names import CAPTIONERS, CUSTOM

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec

    from lmms_eval.models.registry_v2 import ModelManifest

_Adapt = Callable[[ModuleType], None]
"""Adapts a module of lmms-eval."""
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
    _when_imported("lmms_eval.tasks", _adapt)
    _when_imported("lmms_eval.loggers.evaluation_tracker", _adapt_tracker)
    _when_imported("lmms_eval.evaluator_utils", _adapt_scores)
    _when_imported("lmms_eval.baselines", _adapt_baselines)
    custom = ModelManifest(
        model_id=CUSTOM,
        simple_class_path=f"{_WRAPPERS}.{CUSTOM}.CaptionCustom",
    )
    return [
        custom,
        *(
            ModelManifest(
                model_id=name,
                simple_class_path=f"{_WRAPPERS}.{name}.{class_name}",
                chat_class_path=f"{_WRAPPERS}.{name}.{class_name}Chat",
            )
            for name, class_name in CAPTIONERS.items()
        ),
    ]


def _adapt(tasks: ModuleType) -> None:
    """Teach a loaded ``lmms_eval.tasks`` our folder, or say what to do where that fails."""
    _adapt_filters(tasks)
    try:
        adaptations.add_search_path(tasks, str(tasks_path()))
        adaptations.report_missing_data_at_once(tasks)
    except (AttributeError, TypeError, ValueError) as error:
        logger.warning(
            "lmms-eval-captions does not know this version of lmms-eval ({}); its tasks are found "
            'with --include_path "$(lmms-eval-captions tasks-path)"',
            error,
        )


def _adapt_filters(tasks: ModuleType) -> None:
    """Have our hooks see a task's captions together, or say that they do not."""
    try:
        adaptations.show_captions(tasks)
    except AttributeError as error:
        logger.warning(
            "lmms-eval-captions does not know how this version of lmms-eval filters answers ({}); "
            "the judge is asked also where missing captions leave no score possible",
            error,
        )


def _adapt_tracker(trackers: ModuleType) -> None:
    """Have our part of a run saved with lmms-eval's, or say that it is not."""
    try:
        adaptations.complete_results(trackers)
    except AttributeError as error:
        logger.warning(
            "lmms-eval-captions does not know how this version of lmms-eval saves results ({}); "
            "breakdowns and the summary are not written",
            error,
        )


def _adapt_scores(evaluator_utils: ModuleType) -> None:
    """Have samples scored for ``--baseline``, or say that they are not."""
    _adapt_comparison(adaptations.score_samples, evaluator_utils)


def _adapt_baselines(baselines: ModuleType) -> None:
    """Have baselines checked, or say that they are not."""
    _adapt_comparison(adaptations.check_baselines, baselines)


def _adapt_comparison(adapt: _Adapt, module: ModuleType) -> None:
    try:
        adapt(module)
    except AttributeError as error:
        logger.warning(
            "lmms-eval-captions does not know how this version of lmms-eval compares runs ({}); do "
            "not use its --baseline with our tasks",
            error,
        )


def _when_imported(name: str, act: _Adapt) -> None:
    """Call ``act`` with a module now, or when it is first imported.

    Importing it here would cost everyone who only lists models ten seconds.
    """
    module = sys.modules.get(name)
    if module is not None:
        _act_once(module, act)
    elif not any(isinstance(finder, _Finder) and finder.name == name for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(name, act))


def _act_once(module: ModuleType, act: _Adapt) -> None:
    """Adapt a module that was not adapted so before."""
    adapted = vars(module).setdefault(_ADAPTED, [])
    if act not in adapted:
        adapted.append(act)
        act(module)


class _Finder(MetaPathFinder):
    """Finds one module as usual, acts on it once it is loaded, and leaves."""

    def __init__(self, name: str, act: _Adapt) -> None:
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
    def __init__(self, loader: Loader, act: _Adapt) -> None:
        self._loader = loader
        self._act = act

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _act_once(module, self._act)
