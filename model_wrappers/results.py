"""Captions as lmms-eval takes them, by the requests that they answer."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

from lmms_eval.api.instance import GenerationResult, TokenCounts

from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.judges.surrogates import whole
from lmms_eval_captions.model_wrappers.caption_jobs import Caption

if TYPE_CHECKING:
    from lmms_eval_captions.model_wrappers.caption_jobs import Answer
    from lmms_eval_captions.model_wrappers.no_caption import NoCaption
    from lmms_eval_captions.model_wrappers.ordering import PlannedCaption
    from lmms_eval_captions.model_wrappers.outcome import Outcome


class Results:
    """What one call of ``generate_until`` returns, and what it counts."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self._answers: list[tuple[PlannedCaption, Answer]] = []

    def keep(self, planned: PlannedCaption, answer: Answer) -> None:
        """Take a caption, or the promise of one."""
        self._answers.append((planned, answer))

    def fail(self, planned: PlannedCaption, reason: str) -> None:
        """Note that there is no caption."""
        self.outcome.fail(
            planned.path.name, planned.task, planned.doc_id, reason, planned.positions
        )

    def finish(self, n_requests: int) -> list[GenerationResult]:
        """Wait for the captions that are under way: one per request, or a ``NoCaption``."""
        finished: dict[int, GenerationResult] = {}
        started_s = time.perf_counter()
        for planned, answer in self._answers:
            try:
                caption = answer.result() if isinstance(answer, Future) else answer
            except CaptionsError as error:
                self.fail(planned, str(error))
                continue
            self.outcome.n_captions += 1
            finished.update(dict.fromkeys(planned.positions, _result(caption, planned)))
        self.outcome.compute_s += time.perf_counter() - started_s
        return [
            finished.get(position) or no_result(self.outcome.no_caption(position))
            for position in range(n_requests)
        ]


def no_result(no_caption: NoCaption) -> GenerationResult:
    """What lmms-eval is given where there is no caption.

    No token in and none out: how a log without verdicts shows it.
    """
    return GenerationResult(no_caption, TokenCounts(input_tokens=0, output_tokens=0))


def _result(answer: str | Caption, planned: PlannedCaption) -> GenerationResult:
    """A caption, with its tokens where the captioner counts them."""
    caption = Caption(answer) if isinstance(answer, str) else answer
    text = planned.generation.cut(whole(caption.text))
    if caption.n_input_tokens is None and caption.n_output_tokens is None:
        return GenerationResult(text)
    counts = TokenCounts(input_tokens=caption.n_input_tokens, output_tokens=caption.n_output_tokens)
    return GenerationResult(text, counts)
