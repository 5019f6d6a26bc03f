"""From verdicts to what each video adds to a metric, which intervals are computed from."""

from __future__ import annotations

from lmms_eval_captions.analysis.verdicts.verdicts import Verdicts
from lmms_eval_captions.lmms_eval_tasks.video_parts import Group, VideoParts, parts_of_captions

__all__ = ["Group", "VideoParts", "parts_of", "parts_of_captions"]


def parts_of(verdicts: Verdicts, metric: str, group: Group | None = None) -> VideoParts | None:
    """What each video adds to a metric of a task or a group.

    Args:
        verdicts: What was judged.
        metric: One of the benchmark's.
        group: Questions of this group of the breakdown alone; all questions without.

    Returns:
        ``None`` where the metric is no ratio of sums, or cannot be computed of these captions.
    """
    if verdicts.is_pooled:
        sets = [[caption for task in verdicts.tasks for caption in task.captions]]
    else:
        sets = [task.captions for task in verdicts.tasks]
    return parts_of_captions(verdicts.benchmark, metric, sets, group)
