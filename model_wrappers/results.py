"""Captions as lmms-eval takes them, by the requests that they answer."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from lmms_eval.api.instance import GenerationResult, TokenCounts

from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.model_wrappers.caption_jobs import Caption, source_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from lmms_eval_captions.model_wrappers.caption_jobs import Answer
    from lmms_eval_captions.model_wrappers.no_caption import NoCaption
    from lmms_eval_captions.model_wrappers.ordering import PlannedCaption
    from lmms_eval_captions.model_wrappers.outcome import Outcome


class Results:
    """What one call of ``generate_until`` returns, and what it counts.

    Args:
        outcome: How the call goes.
        save: Takes the place of a request and its caption, as soon as there is one.
        store: Takes a caption that was just written, whole, and what asked for it; called in any
            thread.
    """

    def __init__(
        self,
        outcome: Outcome,
        save: Callable[[int, str], None] = lambda _position, _caption: None,
        store: Callable[[PlannedCaption, Caption], None] = lambda _planned, _caption: None,
    ) -> None:
        self.outcome = outcome
        self._save = save
        self._store = store
        self._finished: dict[int, GenerationResult] = {}
        self._promises: deque[tuple[PlannedCaption, Future[Caption]]] = deque()

    def keep(self, planned: PlannedCaption, answer: Answer) -> None:
        """Take a caption, or the promise of one."""
        if isinstance(answer, Future):
            self._promises.append((planned, answer))
            answer.add_done_callback(partial(self._store_promised, planned))
            while self._promises and _has_come(self._promises[0][1]):
                self._redeem(*self._promises.popleft())
        else:
            self._take(planned, answer)

    def reuse(self, planned: PlannedCaption, caption: Caption) -> None:
        """Take a caption that an earlier run has written."""
        self.outcome.n_reused += 1
        self._set(planned, caption)

    def fail(self, planned: PlannedCaption, reason: str) -> None:
        """Note that there is no caption."""
        self.outcome.fail(
            source_name(planned.source), planned.task, planned.doc_id, reason, planned.positions
        )

    def finish(self, n_requests: int) -> list[GenerationResult]:
        """Wait for the captions that are under way: one per request, or a ``NoCaption``."""
        started_s = time.perf_counter()
        while self._promises:
            self._redeem(*self._promises.popleft())
        self.outcome.compute_s += time.perf_counter() - started_s
        return [
            self._finished.get(position) or no_result(self.outcome.no_caption(position))
            for position in range(n_requests)
        ]

    def _redeem(self, planned: PlannedCaption, promise: Future[Caption]) -> None:
        try:
            caption = promise.result()
        except CaptionsError as error:
            self.fail(planned, str(error))
        else:
            self.outcome.n_captions += 1
            self._set(planned, caption)

    def _take(self, planned: PlannedCaption, answer: str | Caption) -> None:
        caption = Caption(answer) if isinstance(answer, str) else answer
        self.outcome.n_captions += 1
        self._store(planned, caption)
        self._set(planned, caption)

    def _store_promised(self, planned: PlannedCaption, done: Future[Caption]) -> None:
        """Store a caption as it comes: a run may end before its turn to be waited for."""
        if not done.cancelled() and done.exception() is None:
            self._store(planned, done.result())

    def _set(self, planned: PlannedCaption, caption: Caption) -> None:
        result = _result(caption, planned)
        for position in planned.positions:
            self._finished[position] = result
            self._save(position, result.text)


def _has_come(promise: Future[Caption]) -> bool:
    """Whether there is a caption, or a reason for none; a mistake ends the run in its turn."""
    if not promise.done() or promise.cancelled():
        return False
    return isinstance(promise.exception(), CaptionsError | None)


def no_result(no_caption: NoCaption) -> GenerationResult:
    """What lmms-eval is given where there is no caption.

    No token in and none out: how a log without verdicts shows it.
    """
    return GenerationResult(no_caption, TokenCounts(input_tokens=0, output_tokens=0))


def _result(caption: Caption, planned: PlannedCaption) -> GenerationResult:
    """A caption, with its tokens where the captioner counts them."""
    text = planned.generation.cut(whole(caption.text))
    if caption.n_input_tokens is None and caption.n_output_tokens is None:
        return GenerationResult(text)
    counts = TokenCounts(input_tokens=caption.n_input_tokens, output_tokens=caption.n_output_tokens)
    return GenerationResult(text, counts)
