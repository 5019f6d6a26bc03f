"""DREAM-1K's file for the sample: events of rendered clips, true by construction."""

from __future__ import annotations

from lmms_eval_captions.lmms_eval_tasks.dream1k.benchmark import FILE, SOURCES
from lmms_eval_captions.lmms_eval_tasks.sample import lines
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES, Scene
from lmms_eval_captions.lmms_eval_tasks.sample.wording import events


def files() -> dict[str, str]:
    """Return ``dream1k/`` in the official layout."""
    return {f"dream1k/{FILE}": lines(_row(number, scene) for number, scene in enumerate(SCENES))}


def _row(number: int, scene: Scene) -> dict[str, object]:
    found = events(scene)
    reference = " ".join(f"{text[0].upper()}{text[1:]}." for text in found)
    return {
        "messages": [{"role": "assistant", "content": [{"reference": reference}]}],
        "dataset": f"DREAM/{SOURCES[number % len(SOURCES)]}",
        "idx": scene.video_id,
        "extra_info": {
            "events": found,
            "n_events": len(found),
            "n_shots": len(scene.shots),
            "n_subjects": len(scene.shots[0].things),
        },
    }
