"""UGC-VideoCap's file for the sample: reference captions of rendered clips, without sound."""

from __future__ import annotations

import json

from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.sample.wording import captions
from lmms_eval_captions.lmms_eval_tasks.ugc_videocap.benchmark import FILE


def files() -> dict[str, str]:
    """Return ``ugc_videocap/`` in the official layout."""
    samples = [
        {
            "video_id": scene.video_id,
            "path": f"video/{scene.video_id}.mp4",
            "answer": captions(scene)["caption"],
        }
        for scene in SCENES
    ]
    document = {"valid_count": len(samples), "samples": samples}
    return {f"ugc_videocap/{FILE}": json.dumps(document, indent=1)}
