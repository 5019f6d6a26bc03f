"""DREAM-1K's file for the sample: events of rendered clips, true by construction."""

from __future__ import annotations

from pathlib import Path

from lmms_eval_captions.lmms_eval_tasks.dream1k.benchmark import FILE, SOURCES
from lmms_eval_captions.lmms_eval_tasks.sample import share_clips, write_lines
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES, Scene
from lmms_eval_captions.lmms_eval_tasks.sample.wording import events


def write_sample(root: Path, clips: Path) -> None:
    """Write ``dream1k/`` in the official layout."""
    share_clips(clips, root / "dream1k/video")
    rows = (_row(number, scene) for number, scene in enumerate(SCENES))
    write_lines(root / "dream1k" / FILE, rows)


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
