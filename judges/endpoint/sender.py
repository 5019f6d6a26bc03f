"""Sends requests until they are answered, or until it is clear that they cannot be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

from lmms_eval_captions.judges.endpoint.answers.sight import SHOWN, Shown, cannot_see, shown_in
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.dialects.apis import DIALECTS
from lmms_eval_captions.judges.endpoint.explicit_sampling import ExplicitSampling
from lmms_eval_captions.judges.endpoint.failed_attempts import FailedAttempts
from lmms_eval_captions.judges.endpoint.limits import Concurrency, Flight, Pace
from lmms_eval_captions.judges.endpoint.model_names import check_name
from lmms_eval_captions.judges.endpoint.patience import Patience
from lmms_eval_captions.judges.endpoint.progress.meter import Meter
from lmms_eval_captions.judges.endpoint.progress.trouble import Trouble
from lmms_eval_captions.judges.endpoint.refused_parameters import RefusedParameters
from lmms_eval_captions.judges.endpoint.request import Client, Reply, Request, is_too_late
from lmms_eval_captions.judges.endpoint.roles import WORDS
from lmms_eval_captions.judges.endpoint.slots import Slots
from lmms_eval_captions.judges.endpoint.smaller_pictures import SmallerPictures
from lmms_eval_captions.judges.errors import (
    JudgeError,
    JudgeStoppedError,
    JudgeUnavailableError,
    TooLateError,
)


class Sender:
    """Sends requests to one endpoint, again and again; to be used inside the event loop alone.

    Args:
        config: How to talk to the endpoint.
        open_client: Makes the client at the first request.
        meter: Counts what happens.
        concurrency: How many requests may be in flight.
        pace: How fast they may go out.
        slots: Where each waits for its slot.
        trouble: Is told of failures.
    """

    def __init__(
        self,
        config: EngineConfig,
        open_client: Callable[[], Client],
        *,
        meter: Meter,
        concurrency: Concurrency,
        pace: Pace,
        slots: Slots,
        trouble: Trouble,
    ) -> None:
        self._config = config
        self._role = WORDS[config.role]
        self._open_client = open_client
        self._client: Client | None = None
        self._meter = meter
        self._concurrency = concurrency
        self._pace = pace
        self._slots = slots
        self._trouble = trouble
        self._patience = Patience(config)
        self._in_flight: set[Flight] = set()
        self._stopped: dict[tuple[str, Shown], JudgeStoppedError] = {}
        """Model and what it is shown to why nothing more of that is asked."""
        self._sampling = ExplicitSampling(config.sampling, n_replicas=len(config.urls))
        self._refused = RefusedParameters(self._role, DIALECTS[config.api].not_taken)
        self._smaller = SmallerPictures(self._role)

    async def send(self, question_index: int, request: Request, attempt: int) -> Reply:
        """The reply to a request, however often it has to be sent.

        Where there is one, the request still has its slot, so that the reply can be saved in it.

        Args:
            question_index: Number of the question, in the order of submission.
            request: What is asked.
            attempt: 0, and one more for each fresh sample.

        Raises:
            JudgeStoppedError: If nothing more can be asked of this model, or nothing that shows it
                what this request does.
            JudgeRequestError: If this request is refused, or given up on.
            TooLateError: If its time is over before it is answered, or could be sent again.
        """
        shown = shown_in(request.messages)
        failed: FailedAttempts | None = None
        while True:
            self._check(request, shown)
            if not self._slots.take(question_index):
                await self._slots.wait(question_index, request.until_s)
                self._check(request, shown)
            flight = self._flight(request, n_timeouts=failed.n_timeouts if failed else 0)
            try:
                reply = await self._fly(request, attempt, flight)
            except JudgeStoppedError as error:
                self.stop(request.model, error, shown)
                raise
            except JudgeUnavailableError as error:
                self._slots.release()
                self._note(error, flight)
                if failed is None:
                    failed = FailedAttempts(flight.sent_s, since_s=time.monotonic())
                self._give_up_or_go_on(request, error, failed, flight)
                is_noise = error.rate_limited and self._pace.is_noise
                await asyncio.sleep(self._patience.back_off_s(failed, error, is_noise=is_noise))
            else:
                now_s = time.monotonic()
                self._patience.on_reply(now_s)
                if self._config.mode == "now":
                    self._answered(flight, now_s)
                self._meter.count_call(
                    request.model,
                    reply.input_tokens,
                    reply.output_tokens,
                    cached_tokens=reply.cached_tokens,
                )
                return reply

    def stop(self, model: str, error: JudgeStoppedError, shown: Shown | None = None) -> None:
        """Ask nothing more of a model; the first reason is the one that is told.

        Args:
            model: Name of the model.
            error: The reason.
            shown: Of requests that show this alone, by default of all.
        """
        for kind in SHOWN if shown is None else (shown,):
            self._stopped.setdefault((model, kind), error)

    def stopped(self, model: str, shown: Shown) -> str | None:
        """Why nothing more is asked of a model that is shown such a thing, ``None`` where it is."""
        error = self._stopped.get((model, shown))
        return None if error is None else str(error)

    @property
    def n_in_flight(self) -> int:
        """Requests sent and not answered."""
        return len(self._in_flight)

    def first_due_s(self) -> float:
        """When the time of the first request in flight is up; there must be one."""
        return min(flight.sent_s + flight.given_s for flight in self._in_flight)

    async def close(self) -> None:
        """Close the client."""
        if self._client is not None:
            await self._client.close()

    def _check(self, request: Request, shown: Shown) -> None:
        error = self._stopped.get((request.model, shown))
        if error is not None:
            kind = type(error)
            raise kind(str(error))
        if is_too_late(request):
            raise TooLateError

    def _flight(self, request: Request, *, n_timeouts: int) -> Flight:
        """A request that goes out now."""
        given_s = request.timeout_s
        if self._config.mode == "now":
            given_s = self._concurrency.time_for(request.timeout_s, n_timeouts)
        return Flight(request.timeout_s, given_s, time.monotonic())

    def _note(self, error: JudgeUnavailableError, flight: Flight) -> None:
        now_s = time.monotonic()
        self._meter.count_retry(error.kind)
        self._trouble.failed(error, flight.sent_s, now_s)
        if error.rate_limited:
            self._meter.n_rate_limited += 1
            if not error.told_limit:
                self._pace.on_refused(now_s, flight.sent_s)
        else:
            self._patience.on_failure()
        if error.timed_out and self._config.mode == "now":
            self._concurrency.on_timeout(flight, now_s)

    def _answered(self, flight: Flight, now_s: float) -> None:
        """More may be in flight now: not first when this one's chain ends, which may ask on."""
        self._pace.on_answer()
        limit = self._concurrency.limit
        self._concurrency.on_reply(flight, now_s)
        if self._concurrency.limit > limit:
            self._slots.fill()

    def _give_up_or_go_on(
        self, request: Request, error: JudgeUnavailableError, failed: FailedAttempts, flight: Flight
    ) -> None:
        now_s = time.monotonic()
        failed.add(error, flight, now_s, self._patience.last_success_s)
        try:
            self._patience.check(failed, error, now_s)
        except JudgeStoppedError as stopped:
            self.stop(request.model, stopped, shown_in(request.messages))
            raise

    async def _fly(self, request: Request, attempt: int, flight: Flight) -> Reply:
        """One completion, counted while it is under way."""
        self._in_flight.add(flight)
        try:
            return await self._complete(request, attempt, flight.given_s)
        finally:
            self._in_flight.discard(flight)

    async def _complete(self, request: Request, attempt: int, given_s: float) -> Reply:
        """One completion of the model that was asked for."""
        once = partial(self._send_once, attempt, given_s, count())
        fitting = partial(self._smaller.send, attempt=attempt, send=once)
        explicitly = partial(self._sampling.send, send=fitting)
        reply = await self._refused.send(request, attempt, send=explicitly)
        return self._named(reply, request.model)

    def _named(self, reply: Reply, model: str) -> Reply:
        """A reply of the model that was asked for; another one's ends judging."""
        config = self._config
        try:
            return check_name(
                reply,
                model,
                alias=config.alias,
                urls=config.urls,
                role=config.role,
                batches=config.batches if config.mode == "batch" else None,
            )
        except JudgeStoppedError as error:
            self.stop(model, error)
            raise

    async def _send_once(
        self, attempt: int, given_s: float, before: Iterator[int], request: Request
    ) -> Reply:
        """One completion; where its model cannot see what it is shown, that is the error's word.

        Args:
            attempt: As :meth:`send`.
            given_s: Seconds until it must be complete.
            before: Gives how often the request was sent since it has its slot.
            request: What is asked.
        """
        if self._client is None:
            self._client = self._open_client()
        if next(before) and (wait_s := self._pace.send_again(time.monotonic())):
            await asyncio.sleep(wait_s)
        try:
            return await self._client.complete(request, attempt, timeout_s=given_s)
        except JudgeError as error:
            shown = shown_in(request.messages)
            is_rate = isinstance(error, JudgeUnavailableError) and error.rate_limited
            if not shown or is_rate or not cannot_see(str(error)):
                raise
            advice = self._role.video if shown == "a video" else self._role.sight
            raise JudgeStoppedError(
                f"the {self._role.who} {request.model!r} cannot be shown {shown}: {error}; {advice}"
            ) from error
