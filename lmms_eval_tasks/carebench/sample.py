"""CaReBench's file for the sample: events and objects of rendered clips, true by construction."""

from __future__ import annotations

from pathlib import Path

from lmms_eval_captions.lmms_eval_tasks.carebench.benchmark import FILE
from lmms_eval_captions.lmms_eval_tasks.sample import share_clips, write_json
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.sample.wording import captions, events, with_article


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
    write_json(root / "carebench" / FILE, rows)
