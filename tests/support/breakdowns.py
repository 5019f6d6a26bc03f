"""Content of a task's breakdown file at the end of its run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN

SURE: Final = ("_ci_low", "_ci_high", "_ci_note", "_judge_share")


def plain(figures: Mapping[str, Any]) -> dict[str, Any]:
    """A group's figures without those that tell how sure they are."""
    return {name: figure for name, figure in figures.items() if not name.endswith(SURE)}


def plain_groups(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The same of every group of a section."""
    return {name: plain(figures) for name, figures in groups.items()}


def kept_breakdown(task: str) -> Any:
    """The breakdown that was kept of a task that was aggregated, as JSON has it."""
    return json.loads(json.dumps(THIS_RUN.breakdowns[task]))
