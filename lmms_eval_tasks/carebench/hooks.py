"""Hooks of the task, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.carebench.benchmark import CAREBENCH
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of

__getattr__ = hooks_of(CAREBENCH).hook
