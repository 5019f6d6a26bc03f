"""Hooks of ``own_gveval_ref_free``, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.own.benchmark import OWN_GVEVAL

__getattr__ = hooks_of(OWN_GVEVAL).hook
