"""Hooks of the VDC tasks with ROUGE-L, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import VDC_ROUGE

__getattr__ = hooks_of(VDC_ROUGE).hook
