"""Hooks of the VDC tasks with VDD, named by the YAML files beside this one."""

from __future__ import annotations

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.vdc.vdd import VDD

_HOOKS = hooks_of(VDD)

process_docs = _HOOKS.process_docs
doc_to_text = _HOOKS.doc_to_text
process_results = _HOOKS.process_results
aggregate_acc = _HOOKS.aggregate("vdd_acc")
aggregate_score = _HOOKS.aggregate("vdd_score")
aggregate_unscored = _HOOKS.aggregate_unscored
aggregate_signature = _HOOKS.aggregate_signature
aggregate_breakdown = _HOOKS.aggregate_breakdown
