"""Hooks of the task, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.salmonn2.benchmark import SALMONN2

__getattr__ = hooks_of(SALMONN2).hook
