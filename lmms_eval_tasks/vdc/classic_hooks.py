"""Hooks of the VDC tasks with the classic metrics, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.vdc.classic import VDC_CLASSIC

__getattr__ = hooks_of(VDC_CLASSIC).hook
