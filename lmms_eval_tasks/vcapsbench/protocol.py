"""VCapsBench's protocol for clips of the user's: yes-no questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import Clip, ClipProtocol, shown
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.benchmark import VCAPSBENCH
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.data import category_name, parse_question


def _document(clip: Clip) -> Doc:
    questions = [_question(value, number) for number, value in enumerate(clip.questions or (), 1)]
    return {
        "video_id": clip.clip_id,
        "questions": questions,
        "n_malformed": 0,
        "n_malformed_in_file": 0,
    }


def _question(value: object, number: int) -> dict[str, str]:
    """Raises where it is no question: a clip's score is not to be one of fewer questions."""
    question = _of_fields(value) if isinstance(value, Mapping) else parse_question(value)
    if question is None:
        raise DataError(
            f"questions, question {number}: expected a 'question' with the 'answer' yes or no, or "
            f"the text category*question*answer, got {shown(value)}"
        )
    return question


def _of_fields(value: Mapping[str, object]) -> dict[str, str] | None:
    category, asked, answer = (value.get(name) for name in ("category", "question", "answer"))
    if not (isinstance(asked, str) and asked.strip() and isinstance(answer, str)):
        return None
    gold = answer.strip(" \t\r\n.\"'").lower()
    if gold not in ("yes", "no"):
        return None
    return {
        "category": category_name(str(category or "none")),
        "question": asked.strip(),
        "answer": gold,
    }


PROTOCOLS: Final = (
    ClipProtocol(
        name="vcapsbench",
        benchmark=VCAPSBENCH,
        task=VCAPSBENCH.tasks["vcapsbench"],
        needs=frozenset({"questions"}),
        document=_document,
    ),
)
"""Each question with its ``answer``, yes or no, and a ``category`` if there is one; or the official
text ``category*question*answer``."""
