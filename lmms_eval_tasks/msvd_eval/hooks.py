"""Hooks of the MSVD-Eval tasks, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.benchmark import MSVD_EVAL

__getattr__ = hooks_of(MSVD_EVAL).hook
