"""Hooks of the VCapsBench tasks, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.benchmark import VCAPSBENCH

__getattr__ = hooks_of(VCAPSBENCH).hook
