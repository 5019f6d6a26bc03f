"""File of video-SALMONN 2's test set for the sample: events of rendered clips."""

from __future__ import annotations

import json

from lmms_eval_captions.lmms_eval_tasks.salmonn2.benchmark import FILE
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.sample.wording import events


def files() -> dict[str, str]:
    """Return ``salmonn2/`` in the official layout, events as text like in a circulating copy."""
    rows = [
        {"video": f"video/{scene.video_id}.mp4", "events": str(events(scene))} for scene in SCENES
    ]
    return {f"salmonn2/{FILE}": json.dumps(rows, indent=1)}
