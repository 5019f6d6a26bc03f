"""First filter of a model's answers, by ``filter_list`` of our tasks' YAML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from lmms_eval.api.filter import Filter

from lmms_eval_captions.judges.files import whole

R = TypeVar("R", bound=Sequence[list[object]])


class WholeCaptions(Filter):  # type: ignore[misc] # lmms-eval has no types.
    """Makes captions of whole characters, whichever model wrote them.

    In place: the answers as they came are logged, too, and half a character in them would cut the
    sample log.
    """

    def apply(self, resps: R, docs: object) -> R:  # noqa: ARG002 - of filters that need them
        """The same lists, shape (n_documents, n_repeats)."""
        for answers in resps:
            answers[:] = [whole(text) if isinstance(text, str) else text for text in answers]
        return resps
