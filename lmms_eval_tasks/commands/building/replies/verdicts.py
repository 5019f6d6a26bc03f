"""Reading what a solver or a reviewer says of one question: a letter, yes or no, what to do.

As strict as the readers of the judges: what states two verdicts, or none on the menu, is unread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.capquiz import LETTERS, read_choice
from lmms_eval_captions.judges.protocols.vcapsbench import read_answer
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.objects import outermost, said
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.values import Object

Decision = Literal["keep", "rewrite", "drop"]
"""What is to be done with a pair."""
YesNoUnknown = Literal["yes", "no", "unknown"]
"""What a model that sees the frames answers."""

_DECISIONS: Final[dict[str, Decision]] = {"keep": "keep", "rewrite": "rewrite", "drop": "drop"}
_UNKNOWN: Final = re.compile(r"\bcan(?:\s?not|['\u2019]t)\s+be\s+determined\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Review:
    """What a reviewer says of a pair."""

    decision: Decision
    question: str | None = None
    """The question anew, where the pair is to be rewritten."""
    answer: str | None = None
    """Its answer, where the pair is to be rewritten."""


def read_letter(reply: Reply, options: Sequence[str]) -> str | None:
    """The letter of the option that a reply chooses, ``None`` where it chooses none, or several.

    Args:
        reply: What the solver said.
        options: Texts of the options in the order of their letters, at most six.

    >>> read_letter(Reply("B", "stop"), ["red", "blue", "green", "black", "white"])
    'B'
    >>> read_letter(Reply("F", "stop"), ["red", "blue", "green", "black", "white"]) is None
    True
    """
    missing = len(LETTERS) - len(options)
    letter = read_choice(reply, (*options, *[""] * missing))
    return letter if letter is not None and LETTERS.index(letter) < len(options) else None


def read_yes_no(reply: Reply) -> YesNoUnknown | None:
    """Whether a reply says yes, no, or that it cannot be determined; ``None`` where none is clear.

    >>> read_yes_no(Reply("Cannot be determined. The door is never shown.", "stop"))
    'unknown'
    """
    text = _UNKNOWN.sub("Unanswerable", reply.text)
    answer = read_answer(replace(reply, text=text))
    return "unknown" if answer == "unanswerable" else answer


def read_review(reply: Reply) -> Review | None:
    """What a reviewer decides, ``None`` where it is unclear, or where a new text is missing.

    >>> read_review(Reply('{"decision": "drop", "question": "Who?", "answer": "A man"}', "stop"))
    Review(decision='drop', question=None, answer=None)
    """
    found = outermost(said(reply.text), "{")
    objects = [_fields(value) for value in found.values if isinstance(value, Object)]
    reviews = [_review(fields) for fields in objects if "decision" in fields]
    # What goes on behind a cut may decide otherwise.
    is_one = bool(reviews) and all(review == reviews[0] for review in reviews)
    return reviews[0] if is_one and not found.is_cut else None


def _fields(pairs: Sequence[tuple[str, object]]) -> Mapping[str, str]:
    """An object's texts; a key that stands twice says nothing, nor does the form of a prompt."""
    fields: dict[str, str] = {}
    # "decision": "keep", "rewrite" or "drop" reads as a key with quotes in it.
    is_form = any('"' in key for key, _ in pairs)
    for key, value in pairs:
        name = key.strip().casefold()
        is_said = isinstance(value, str) and name not in fields and not is_form
        fields[name] = value.strip() if isinstance(value, str) and is_said else ""
    return fields


def _review(fields: Mapping[str, str]) -> Review | None:
    decision = _DECISIONS.get(fields["decision"].casefold())
    if decision is None or decision != "rewrite":
        return None if decision is None else Review(decision)
    question, answer = fields.get("question"), fields.get("answer")
    return Review(decision, question, answer) if question and answer else None
