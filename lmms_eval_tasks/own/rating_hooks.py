"""Hooks of ``own_vllm_judge``, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.own.benchmark import OWN_RATING

__getattr__ = hooks_of(OWN_RATING).hook
