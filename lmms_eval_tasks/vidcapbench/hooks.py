"""Hooks of the VidCapBench tasks, named by the YAML files beside this one."""

from __future__ import annotations

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import VIDCAPBENCH

_HOOKS = hooks_of(VIDCAPBENCH)

process_docs = _HOOKS.process_docs
doc_to_visual = _HOOKS.doc_to_visual
doc_to_text = _HOOKS.doc_to_text
doc_to_messages = _HOOKS.doc_to_messages
doc_to_target = _HOOKS.doc_to_target
process_results = _HOOKS.process_results
aggregate_acc = _HOOKS.aggregate("acc")
aggregate_pre = _HOOKS.aggregate("pre")
aggregate_cov = _HOOKS.aggregate("cov")
aggregate_con = _HOOKS.aggregate("con")
aggregate_unscored = _HOOKS.aggregate_unscored
aggregate_signature = _HOOKS.aggregate_signature
aggregate_breakdown = _HOOKS.aggregate_breakdown
