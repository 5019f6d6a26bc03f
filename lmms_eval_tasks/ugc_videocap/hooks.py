"""Hooks of the task, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.ugc_videocap.benchmark import UGC_VIDEOCAP

__getattr__ = hooks_of(UGC_VIDEOCAP).hook
