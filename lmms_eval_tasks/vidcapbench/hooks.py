"""Hooks of the VidCapBench tasks, and of their group over all pairs, which the YAML files name."""

from lmms_eval_captions.lmms_eval_tasks.hooks import PooledGroup, hooks_of
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import VIDCAPBENCH

__getattr__ = hooks_of(VIDCAPBENCH).hook

# A video that is in both tasks has a caption in each, and counts once in the tokens of con.
group_metric_list = PooledGroup(
    VIDCAPBENCH,
    "vidcapbench",
    note="all pairs of VidCapBench-AE and VidCapBench-HE together; HE holds pairs that judges "
    "grade unstably and that are meant to be judged by people (section 3.4)",
).group_metric_list
