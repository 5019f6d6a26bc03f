"""Hooks of the VDC tasks with VDD, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import VDD

__getattr__ = hooks_of(VDD).hook
