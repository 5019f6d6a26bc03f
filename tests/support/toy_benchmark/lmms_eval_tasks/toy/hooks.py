"""Hooks of the toy benchmark's task and group."""

from __future__ import annotations

from lmms_eval_captions.lmms_eval_tasks.toy.benchmark import TOY

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.pooled_group import PooledGroup

group_metric_list = PooledGroup(TOY, "toy", note="").group_metric_list
__getattr__ = hooks_of(TOY).hook
