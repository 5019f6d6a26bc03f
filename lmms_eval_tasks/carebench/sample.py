"""CaReBench's file for the sample: events and objects of rendered clips, true by construction."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lmms_eval_captions.lmms_eval_tasks.carebench.data import FILE
from lmms_eval_captions.lmms_eval_tasks.sample import share_clips
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.sample.wording import captions, events, with_article

if TYPE_CHECKING:
    from pathlib import Path


def write_sample(root: Path, clips: Path) -> None:
    """Write ``carebench/`` in the official layout."""
    share_clips(clips, root / "carebench/videos")
    rows = [
        {
            "idx": number,
            "video": f"{scene.video_id}.mp4",
            "caption": captions(scene)["caption"],
            "events": events(scene),
            "objects": [with_article(thing.name) for thing in scene.shots[0].things],
        }
        for number, scene in enumerate(SCENES)
    ]
    path = root / "carebench" / FILE
    path.parent.mkdir()
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8", newline="\n")
