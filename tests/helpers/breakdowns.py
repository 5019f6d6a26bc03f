"""What a task's breakdown file will hold, once its run ends."""

from __future__ import annotations

import json
from typing import Any

from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN


def kept_breakdown(task: str) -> Any:
    """The breakdown that was kept of a task that was aggregated, as JSON has it."""
    return json.loads(json.dumps(THIS_RUN.breakdowns[task]))
