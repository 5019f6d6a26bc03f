"""VidCapBench's protocol for clips of the user's: answers graded in four classes."""

from __future__ import annotations

from typing import Final

from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc, Task
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import Clip, ClipProtocol
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import VIDCAPBENCH
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.data import read_pairs


def _document(clip: Clip) -> Doc:
    questions = read_pairs(list(clip.questions or ()), where="questions")
    return {"video_id": clip.clip_id, "video_dir": clip.clip_id, "questions": questions}


PROTOCOLS: Final = (
    ClipProtocol(
        name="vidcapbench",
        benchmark=VIDCAPBENCH,
        task=Task(
            name="vidcapbench",
            caption_prompt="vidcapbench_caption.free",
            judge_prompts=VIDCAPBENCH.tasks["vidcapbench_ae"].judge_prompts,
            caption_chars=800,
        ),
        needs=frozenset({"questions"}),
        document=_document,
    ),
)
"""Each question with its ``answer``; ``primary_category`` and ``sub_category`` if there are any."""
