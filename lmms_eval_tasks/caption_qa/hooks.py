"""Hooks of the tasks, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.caption_qa.benchmark import CAPTION_QA
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of

__getattr__ = hooks_of(CAPTION_QA).hook
