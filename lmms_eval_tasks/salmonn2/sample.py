"""File of video-SALMONN 2's test set for the sample: events of rendered clips."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lmms_eval_captions.lmms_eval_tasks.sample import share_clips
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.sample.wording import events

if TYPE_CHECKING:
    from pathlib import Path


def write_sample(root: Path, clips: Path) -> None:
    """Write ``salmonn2/`` in the official layout, events as text like in a circulating copy."""
    share_clips(clips, root / "salmonn2/video")
    rows = [
        {"video": f"video/{scene.video_id}.mp4", "events": str(events(scene))} for scene in SCENES
    ]
    path = root / "salmonn2" / "video_salmonn2_test.json"
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8", newline="\n")
