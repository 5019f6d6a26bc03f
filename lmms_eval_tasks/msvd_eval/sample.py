"""MSVD-Eval's file for the sample: references and a rated candidate, from what a scene shows."""

from __future__ import annotations

import json
from statistics import fmean

from lmms_eval_captions.lmms_eval_tasks.msvd_eval.benchmark import FILE
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES, Scene
from lmms_eval_captions.lmms_eval_tasks.sample.wording import captions

_RIGHT = ([5, 4, 5, 5], [5, 5, 4, 5])
_WRONG = ([1, 2, 4, 2], [2, 1, 4, 1])


def files() -> dict[str, str]:
    """Return ``msvd_eval/`` in the official layout."""
    rows = {scene.video_id: _row(scene, number) for number, scene in enumerate(SCENES)}
    return {f"msvd_eval/{FILE}": json.dumps(rows, indent=1) + "\n"}


def _row(scene: Scene, number: int) -> dict[str, object]:
    """One video; every third candidate describes the clip after it, and is rated so."""
    is_wrong = number % 3 == 2
    shown = SCENES[(number + 1) % len(SCENES)] if is_wrong else scene
    references = captions(scene)
    return {
        "vname": f"{scene.video_id}.mp4",
        "ref": [references["short_caption"], references["main_object_caption"]],
        "candidate": captions(shown)["short_caption"],
        "human_score": [[*scores, fmean(scores)] for scores in (_WRONG if is_wrong else _RIGHT)],
    }
