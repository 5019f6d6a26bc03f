"""Whether the verdicts on several captioners were come by in one way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lmms_eval_captions.analysis.verdicts.verdicts import TaskVerdicts
from lmms_eval_captions.lmms_eval_tasks.scoring import signature_of
from lmms_eval_captions.lmms_eval_tasks.signature import (
    ASKED,
    CHEAP,
    DISTRIBUTION,
    DOUBTS,
    PRECISION,
    QUESTIONS,
    SERVED,
    UNAVAILABLE,
    Signature,
)

MOVES_NO_SCORE: Final = frozenset(
    {
        # How many there are of what: what not all have is left out, question by question.
        "unscored", "empty", "dropped", "limit", "offset", QUESTIONS,
        # A sample of the questions is unbiased for all of them, whoever chose it.
        PRECISION, ASKED, CHEAP,
        # What speaks against a judge is told beside the numbers.
        DOUBTS,
        # What moves scores from version to version is in the field protocol.
        DISTRIBUTION,
    }
)  # fmt: skip
"""Fields of the signature in which captioners that are compared may differ; in all others, also
those that a benchmark adds, they must not."""
_MAY_BE_UNKNOWN: Final = frozenset({SERVED})
"""Fields that say something of the judge, and nothing where they are missing."""


def differences(several: Sequence[TaskVerdicts]) -> dict[str, list[str]]:
    """Fields of the signature that move a score and are not the same for all captioners.

    Args:
        several: One task of each captioner.

    Returns:
        Field to its value for each captioner, ``none`` where it has none.
    """
    return differences_of([_signature(task) for task in several])


def differences_of(several: Sequence[Signature]) -> dict[str, list[str]]:
    """As :func:`differences`, of the signatures themselves."""
    signatures = [signature.fields for signature in several]
    names = dict.fromkeys(name for fields in signatures for name in fields)
    found = {}
    for name in names:
        values = [fields.get(name, "none") for fields in signatures]
        # Of a judge that does not name its version, nothing is known.
        told = {value for value in values if value != "none" or name not in _MAY_BE_UNKNOWN}
        # The numbers of a metric that could not be computed are not compared.
        if name not in MOVES_NO_SCORE and len(told) > 1 and UNAVAILABLE not in told:
            found[name] = values
    return found


def _signature(task: TaskVerdicts) -> Signature:
    """That of the results; of a run whose results have none, that of its captions."""
    return task.signature or Signature.parse(signature_of(task.captions))
