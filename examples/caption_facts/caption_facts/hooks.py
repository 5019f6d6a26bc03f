"""Hooks of the tasks, which the YAML files name."""

from __future__ import annotations

from caption_facts.benchmark import TOY
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of

__getattr__ = hooks_of(TOY).hook
