"""CaReBench's file for the sample: events and objects of rendered clips, true by construction."""

from __future__ import annotations

import json

from lmms_eval_captions.lmms_eval_tasks.carebench.benchmark import FILE
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.sample.wording import captions, events, with_article


def files() -> dict[str, str]:
    """Return ``carebench/`` in the official layout."""
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
    return {f"carebench/{FILE}": json.dumps(rows, indent=1)}
