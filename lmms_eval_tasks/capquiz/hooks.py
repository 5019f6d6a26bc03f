"""Hooks of the CapQuiz tasks, named by the YAML files beside this one."""

from __future__ import annotations

from lmms_eval_captions.lmms_eval_tasks.capquiz.benchmark import CAPQUIZ
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of

_HOOKS = hooks_of(CAPQUIZ)

process_docs = _HOOKS.process_docs
doc_to_visual = _HOOKS.doc_to_visual
doc_to_text = _HOOKS.doc_to_text
doc_to_messages = _HOOKS.doc_to_messages
doc_to_target = _HOOKS.doc_to_target
process_results = _HOOKS.process_results
aggregate_capf1 = _HOOKS.aggregate("capf1")
aggregate_capp = _HOOKS.aggregate("capp")
aggregate_capr = _HOOKS.aggregate("capr")
aggregate_unscored = _HOOKS.aggregate_unscored
aggregate_signature = _HOOKS.aggregate_signature
aggregate_breakdown = _HOOKS.aggregate_breakdown
