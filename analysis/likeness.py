"""Whether captioners were judged in the same way, by the signatures of their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.signature import (
    ASKED,
    CHEAP,
    COUNTS,
    DISTRIBUTION,
    DOUBTS,
    PRECISION,
    QUESTIONS,
    SERVED,
    UNAVAILABLE,
    Signature,
)

MAY_DIFFER: Final = frozenset(
    {
        # Counts: what not all captioners have is left out, question by question.
        "unscored", *COUNTS, "limit", "offset", QUESTIONS,
        # A sample of the questions is unbiased for all of them.
        PRECISION, ASKED, CHEAP,
        # Doubts about a judge are shown next to the numbers.
        DOUBTS,
        # The field "protocol" says what affects scores from version to version.
        DISTRIBUTION,
    }
)  # fmt: skip
"""Fields of the signature in which captioners that are compared may differ."""


def differences(signatures: Sequence[Signature]) -> Mapping[str, list[str]]:
    """Return the fields that affect a score and are not the same for all captioners.

    Args:
        signatures: One task's, of each captioner.

    Returns:
        Field to its value for each captioner, ``none`` if it has none.
    """
    names = dict.fromkeys(name for signature in signatures for name in signature.fields)
    found = {}
    for name in names:
        values = [signature.fields.get(name, "none") for signature in signatures]
        # Nothing is known of a judge that does not name its version.
        known = {value for value in values if value != "none" or name != SERVED}
        # A metric that could not be computed is not compared.
        if name not in MAY_DIFFER and len(known) > 1 and UNAVAILABLE not in known:
            found[name] = values
    return found
