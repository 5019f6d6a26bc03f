"""VDC's protocol for clips of the user's: questions in free words, answered and matched."""

from __future__ import annotations

from typing import Final

from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc, Task
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import Clip, ClipProtocol
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import VDC
from lmms_eval_captions.lmms_eval_tasks.vdc.data import read_pairs


def _document(clip: Clip) -> Doc:
    questions = read_pairs(list(clip.questions or ()), where="questions")
    return {"video_id": clip.clip_id, "aspect": "own", "questions": questions}


PROTOCOLS: Final = (
    ClipProtocol(
        name="vdc",
        benchmark=VDC,
        task=Task(
            name="vdc",
            caption_prompt="vdc_caption.detailed",
            judge_prompts=VDC.tasks["vdc_detailed"].judge_prompts,
            caption_chars=1200,
        ),
        needs=frozenset({"questions"}),
        document=_document,
    ),
)
"""Each question with its ``answer``, and a ``category`` if there is one."""
