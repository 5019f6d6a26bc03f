"""Hooks of the CapQuiz tasks, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.capquiz.benchmark import CAPQUIZ
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of

__getattr__ = hooks_of(CAPQUIZ).hook
