"""Hooks of the toy benchmark's task and group."""

from __future__ import annotations

from lmms_eval_captions.lmms_eval_tasks.toy.benchmark import TOY

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.pooled_group import PooledGroup

_HOOKS = hooks_of(TOY)

process_docs = _HOOKS.process_docs
doc_to_visual = _HOOKS.doc_to_visual
doc_to_text = _HOOKS.doc_to_text
doc_to_messages = _HOOKS.doc_to_messages
doc_to_target = _HOOKS.doc_to_target
process_results = _HOOKS.process_results
aggregate_precision = _HOOKS.aggregate("precision")
aggregate_coverage = _HOOKS.aggregate("coverage")
aggregate_f1 = _HOOKS.aggregate("f1")
aggregate_unscored = _HOOKS.aggregate_unscored
aggregate_signature = _HOOKS.aggregate_signature
aggregate_breakdown = _HOOKS.aggregate_breakdown
group_f1 = PooledGroup(TOY, "toy", note="").aggregate("f1")
