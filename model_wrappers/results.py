"""Captions as lmms-eval takes them, and how a call of captioning went."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from lmms_eval.api.instance import GenerationResult, TokenCounts
from loguru import logger

from lmms_eval_captions.judges.errors import CaptionError, CaptionsError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.model_wrappers.caption_jobs import Answer, Caption, source_name
from lmms_eval_captions.model_wrappers.no_caption import NoCaption

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lmms_eval_captions.model_wrappers.pipeline import PlannedCaption

R = TypeVar("R")
SHOWN: Final = 20
"""Failures that are named in the closing report, and clips that are logged for one reason."""


@dataclass(slots=True)
class Outcome:
    """Counts of one call of ``generate_until``."""

    n_captions: int = 0
    """Captions written; equal requests share one."""
    compute_s: float = 0.0
    """Seconds spent in the model."""
    wait_s: float = 0.0
    """Seconds in which the model waited for frames."""
    failures: dict[tuple[str, int], str] = field(default_factory=dict)
    """Task and document to the clip and why it has no caption."""
    _reasons: dict[int, str] = field(default_factory=dict)
    _logged: set[str] = field(default_factory=set)
    _n_alike: Counter[str] = field(default_factory=Counter)
    """Clips without a caption, by the reason: an endpoint that is gone is one for all of them."""

    def fail(
        self,
        name: str,
        document: tuple[str, int],
        reason: str,
        positions: Sequence[int],
        *,
        is_quiet: bool = False,
    ) -> None:
        """Record a document that gets no caption; log the clip once, and ``SHOWN`` for one reason.

        ``is_quiet`` leaves that to the closing report; ``positions`` are those of its requests.
        """
        name, reason = whole(name), whole(reason)
        self.failures[document] = f"{name}: {reason}"
        self._reasons.update(dict.fromkeys(positions, f"{name}: {reason}"))
        if name not in self._logged and not is_quiet:
            self._logged.add(name)
            self._n_alike[reason] += 1
            if self._n_alike[reason] <= SHOWN:
                logger.warning("no caption for {}: {}", name, reason)
            elif self._n_alike[reason] == SHOWN + 1:
                logger.warning("no caption for more, for the same reason; they are counted below")

    def no_caption(self, position: int) -> NoCaption:
        """Return what stands for the caption that a request did not get."""
        return NoCaption(self._reasons.get(position, "the captioner gave none"))

    def shares(self) -> str:
        """Return where the time went.

        >>> Outcome(compute_s=3.0, wait_s=1.0).shares()
        'computing 75%, waiting for frames 25%'
        """
        total_s = self.compute_s + self.wait_s
        waiting = self.wait_s / total_s if total_s else 0.0
        return f"computing {1 - waiting:.0%}, waiting for frames {waiting:.0%}" if total_s else ""

    def report(self) -> None:
        """Log the rate, the shares of time, and every document without a caption."""
        total_s = self.compute_s + self.wait_s
        if self.n_captions and total_s:
            rate, shares = self.n_captions / total_s, self.shares()
            text = "{} captions in {:.1f} s, {:.2f} a second; {}"
            logger.info(text, self.n_captions, total_s, rate, shares)
        if self.failures:
            lines = [f"{task}[{doc_id}] {text}" for (task, doc_id), text in self.failures.items()]
            more = len(lines) - SHOWN
            logger.error(
                "{} document(s) have no caption, their questions are unscored:\n  {}{}",
                len(lines),
                "\n  ".join(lines[:SHOWN]),
                f"\n  and {more} more" if more > 0 else "",
            )


class Results:
    """Return value of one call of ``generate_until``, as it comes about.

    ``keep`` saves a caption with what asked for it and its text; it is called in any thread.
    """

    def __init__(
        self, outcome: Outcome, keep: Callable[[PlannedCaption, Caption, str], None]
    ) -> None:
        self.outcome = outcome
        self._keep = keep
        self._finished: dict[int, GenerationResult] = {}
        self._promises: deque[tuple[PlannedCaption, Future[Caption]]] = deque()

    def take(self, planned: PlannedCaption, answer: Answer) -> None:
        """Take a caption, or the promise of one."""
        if not isinstance(answer, Future):
            self.outcome.n_captions += 1
            self.reuse(planned, Caption(answer) if isinstance(answer, str) else answer)
            return

        def keep(done: Future[Caption]) -> None:
            if not done.cancelled() and done.exception() is None:
                self._keep(planned, done.result(), _text(planned, done.result()))

        self._promises.append((planned, answer))
        # As it comes: a run may end before its turn to be waited for.
        answer.add_done_callback(keep)
        while self._promises and _has_come(self._promises[0][1]):
            self._redeem(*self._promises.popleft())

    def reuse(self, planned: PlannedCaption, caption: Caption) -> None:
        """Take a caption, of an earlier run, say."""
        self._keep(planned, caption, _text(planned, caption))
        self._set(planned, caption)

    def fail(self, planned: PlannedCaption, reason: str) -> None:
        """Record that there is no caption."""
        document = planned.task, planned.doc_id
        self.outcome.fail(source_name(planned.source), document, reason, planned.positions)

    def finish(self, n_requests: int) -> list[GenerationResult]:
        """Wait for promised captions and return one per request, or a ``NoCaption``."""
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
            # The callback that saves it may not have run yet.
            self.reuse(planned, caption)

    def _set(self, planned: PlannedCaption, caption: Caption) -> None:
        counts = caption.n_input_tokens, caption.n_output_tokens
        tokens = [] if counts == (None, None) else [TokenCounts(*counts)]
        result = GenerationResult(_text(planned, caption), *tokens)
        self._finished.update(dict.fromkeys(planned.positions, result))


def no_result(no_caption: NoCaption) -> GenerationResult:
    """Return what lmms-eval is given for a missing caption: no token in, none out."""
    return GenerationResult(no_caption, TokenCounts(input_tokens=0, output_tokens=0))


def _text(planned: PlannedCaption, caption: Caption) -> str:
    return planned.generation.cut(whole(caption.text))


def _has_come(promise: Future[Caption]) -> bool:
    """Return if there is a caption, or a reason for none; a mistake ends the run in its turn."""
    is_done = promise.done() and not promise.cancelled()
    return is_done and isinstance(promise.exception(), CaptionsError | None)


class Promises:
    """Captions in flight, at most ``most``; ``words`` describes errors of other packages."""

    def __init__(self, most: int, words: Callable[[BaseException], str] = repr) -> None:
        self._under_way = threading.Semaphore(most)
        self._words = words

    def caption(
        self, ask: Callable[[], Future[R]], read: Callable[[R], Caption]
    ) -> Future[Caption]:
        """Ask as soon as there is room, and return the promise; it is settled however that ends."""
        self._under_way.acquire()
        try:
            asked = ask()
        except BaseException:
            self._under_way.release()
            raise
        caption: Future[Caption] = Future()

        def finish(done: Future[R]) -> None:
            self._under_way.release()
            if done.cancelled():  # the run has ended
                caption.cancel()
                return
            try:
                caption.set_result(read(done.result()))
            except CaptionsError as error:
                caption.set_exception(error)
            except BaseException as error:  # noqa: BLE001 - who waits must not wait for ever
                caption.set_exception(CaptionError(self._words(error)))

        asked.add_done_callback(finish)
        return caption
