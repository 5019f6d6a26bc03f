"""Hooks of the VDC tasks, named by the YAML files beside this one."""

from __future__ import annotations

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import VDC, VDC_ROUGE

_HOOKS, _ROUGE = hooks_of(VDC), hooks_of(VDC_ROUGE)

process_docs = _HOOKS.process_docs
process_docs_rouge = _ROUGE.process_docs
doc_to_visual = _HOOKS.doc_to_visual
doc_to_text = _HOOKS.doc_to_text
doc_to_messages = _HOOKS.doc_to_messages
doc_to_target = _HOOKS.doc_to_target
process_results = _HOOKS.process_results
process_results_rouge = _ROUGE.process_results
aggregate_acc = _HOOKS.aggregate("vdc_acc")
aggregate_score = _HOOKS.aggregate("vdc_score")
aggregate_rouge = _ROUGE.aggregate("vdc_rouge")
aggregate_unscored = _HOOKS.aggregate_unscored
aggregate_signature = _HOOKS.aggregate_signature
aggregate_breakdown = _HOOKS.aggregate_breakdown
aggregate_rouge_breakdown = _ROUGE.aggregate_breakdown
