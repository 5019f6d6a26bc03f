"""MSVD-Eval's file for the sample: references and a rated candidate, from what a scene shows."""

from __future__ import annotations

import json
from pathlib import Path

from lmms_eval_captions.lmms_eval_tasks.sample import share_clips
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES, Scene
from lmms_eval_captions.lmms_eval_tasks.sample.wording import captions

_RIGHT = ([5, 4, 5, 5], [5, 5, 4, 5])
_WRONG = ([1, 2, 4, 2], [2, 1, 4, 1])


def write_sample(root: Path, clips: Path) -> None:
    """Write ``msvd_eval/`` in the layout that the task reads."""
    share_clips(clips, root / "msvd_eval/YouTubeClips")
    rows = {scene.video_id: row(scene, number) for number, scene in enumerate(SCENES)}
    text = json.dumps(rows, ensure_ascii=False, indent=1)
    path = root / "msvd_eval" / "MSVD-Eval.json"
    path.write_text(f"{text}\n", encoding="utf-8", newline="\n")


def row(scene: Scene, number: int) -> dict[str, object]:
    """One video; every third candidate describes the clip after it, and is rated so."""
    wrong = number % 3 == 2
    shown = SCENES[(number + 1) % len(SCENES)] if wrong else scene
    references = captions(scene)
    return {
        "vname": f"{scene.video_id}.mp4",
        "ref": [references["short_caption"], references["main_object_caption"]],
        "candidate": captions(shown)["short_caption"],
        "human_score": [
            [*scores, sum(scores) / len(scores)] for scores in (_WRONG if wrong else _RIGHT)
        ],
    }
