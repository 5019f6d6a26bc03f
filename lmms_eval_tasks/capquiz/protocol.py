"""CapQuiz's protocol for clips of the user's: a quiz of multiple choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc
from lmms_eval_captions.lmms_eval_tasks.capquiz.benchmark import CAPQUIZ
from lmms_eval_captions.lmms_eval_tasks.capquiz.data import read_questions
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import Clip, ClipProtocol


def _document(clip: Clip) -> Doc:
    questions = read_questions([_with_category(value) for value in clip.questions or ()])
    return {"video": clip.clip_id, "domain": "own", "questions": questions}


def _with_category(value: object) -> object:
    """A question of no type is one of the user's own types."""
    if not isinstance(value, Mapping):
        return value
    return {**value, "category": value.get("category") or "own"}


PROTOCOLS: Final = (
    ClipProtocol(
        name="capquiz",
        benchmark=CAPQUIZ,
        task=replace(CAPQUIZ.tasks["capquiz"], fields={}, extras={}),
        needs=frozenset({"questions"}),
        document=_document,
    ),
)
"""Each question with five ``options`` and the ``answer``, one of them; a ``category`` if there is
one."""
