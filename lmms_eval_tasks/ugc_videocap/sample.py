"""UGC-VideoCap's file for the sample: reference captions of rendered clips, without sound."""

from __future__ import annotations

from pathlib import Path

from lmms_eval_captions.lmms_eval_tasks.sample import share_clips, write_json
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.sample.wording import captions
from lmms_eval_captions.lmms_eval_tasks.ugc_videocap.benchmark import FILE


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
    document = {"valid_count": len(samples), "samples": samples}
    write_json(root / "ugc_videocap" / FILE, document)
