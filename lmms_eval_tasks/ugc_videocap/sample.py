"""UGC-VideoCap's file for the sample: reference captions of rendered clips, without sound."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lmms_eval_captions.lmms_eval_tasks.sample import share_clips
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.sample.wording import captions

if TYPE_CHECKING:
    from pathlib import Path


def write_sample(root: Path, clips: Path) -> None:
    """Write ``ugc_videocap/`` in the official layout."""
    share_clips(clips, root / "ugc_videocap/video")
    samples = [
        {
            "video_id": scene.video_id,
            "path": f"video/{scene.video_id}.mp4",
            "answer": captions(scene)["caption"],
        }
        for scene in SCENES
    ]
    path = root / "ugc_videocap" / "final_caption_qa.json"
    text = json.dumps({"valid_count": len(samples), "samples": samples}, indent=1)
    path.write_text(text, encoding="utf-8", newline="\n")
