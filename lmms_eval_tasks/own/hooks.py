"""Hooks of ``own_gveval_ref_free``, named by the YAML files beside this one."""

from __future__ import annotations

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.own.benchmark import OWN_GVEVAL

_HOOKS = hooks_of(OWN_GVEVAL)

process_docs = _HOOKS.process_docs
doc_to_visual = _HOOKS.doc_to_visual
doc_to_text = _HOOKS.doc_to_text
doc_to_messages = _HOOKS.doc_to_messages
doc_to_target = _HOOKS.doc_to_target
process_results = _HOOKS.process_results
aggregate_accuracy = _HOOKS.aggregate("accuracy")
aggregate_completeness = _HOOKS.aggregate("completeness")
aggregate_conciseness = _HOOKS.aggregate("conciseness")
aggregate_relevance = _HOOKS.aggregate("relevance")
aggregate_avg = _HOOKS.aggregate("avg")
aggregate_unscored = _HOOKS.aggregate_unscored
aggregate_signature = _HOOKS.aggregate_signature
aggregate_breakdown = _HOOKS.aggregate_breakdown
