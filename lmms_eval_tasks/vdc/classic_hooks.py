"""Hooks of the VDC tasks with the classic metrics, named by the YAML files beside this one."""

from __future__ import annotations

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.vdc.classic import VDC_CLASSIC

_HOOKS = hooks_of(VDC_CLASSIC)

process_docs = _HOOKS.process_docs
doc_to_text = _HOOKS.doc_to_text
process_results = _HOOKS.process_results
aggregate_rouge_l = _HOOKS.aggregate("rouge_l")
aggregate_cider = _HOOKS.aggregate("cider")
aggregate_bleu_1 = _HOOKS.aggregate("bleu_1")
aggregate_bleu_4 = _HOOKS.aggregate("bleu_4")
aggregate_meteor = _HOOKS.aggregate("meteor")
aggregate_unscored = _HOOKS.aggregate_unscored
aggregate_signature = _HOOKS.aggregate_signature
aggregate_breakdown = _HOOKS.aggregate_breakdown
