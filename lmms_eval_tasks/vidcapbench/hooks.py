"""Hooks of the VidCapBench tasks, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import VIDCAPBENCH

__getattr__ = hooks_of(VIDCAPBENCH).hook
