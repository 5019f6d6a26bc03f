"""File of video-SALMONN 2's test set for the sample: events of rendered clips."""

from __future__ import annotations

from pathlib import Path

from lmms_eval_captions.lmms_eval_tasks.salmonn2.benchmark import FILE
from lmms_eval_captions.lmms_eval_tasks.sample import share_clips, write_json
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.sample.wording import events


def write_sample(root: Path, clips: Path) -> None:
    """Write ``salmonn2/`` in the official layout, events as text like in a circulating copy."""
    share_clips(clips, root / "salmonn2/video")
    rows = [
        {"video": f"video/{scene.video_id}.mp4", "events": str(events(scene))} for scene in SCENES
    ]
    write_json(root / "salmonn2" / FILE, rows)
