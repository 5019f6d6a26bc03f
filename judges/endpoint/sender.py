"""Sends requests until they are answered, or until it is clear that they cannot be."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from functools import partial
from math import inf, log
from typing import TYPE_CHECKING, Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.answers.sight import SHOWN, Shown, cannot_see, shown_in
from lmms_eval_captions.judges.endpoint.dialects.dialect import DIALECTS
from lmms_eval_captions.judges.endpoint.explicit_sampling import ExplicitSampling
from lmms_eval_captions.judges.endpoint.failed_attempts import FailedAttempts
from lmms_eval_captions.judges.endpoint.load import Flight, Load
from lmms_eval_captions.judges.endpoint.model_names import check_name
from lmms_eval_captions.judges.endpoint.pacing import Pacing
from lmms_eval_captions.judges.endpoint.progress.outlook import clock
from lmms_eval_captions.judges.endpoint.redaction import scrub
from lmms_eval_captions.judges.endpoint.refused_parameters import RefusedParameters
from lmms_eval_captions.judges.endpoint.request import Client, Reply, Request
from lmms_eval_captions.judges.endpoint.roles import WORDS
from lmms_eval_captions.judges.endpoint.stragglers import InFlight, Stragglers
from lmms_eval_captions.judges.errors import (
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
)

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.config import EngineConfig
    from lmms_eval_captions.judges.endpoint.progress.meter import Meter
    from lmms_eval_captions.judges.endpoint.progress.trouble import Trouble
    from lmms_eval_captions.judges.endpoint.slots import Slots

_LIVELY_DOUBLINGS: Final = 2
"""Doublings of the back-off at most, where others get through: the endpoint is not down."""
_FAILURES_N: Final = 100
"""The share of requests that fail is that of about so many."""
_LOST: Final = 1e-6
"""Chance that a request is given up on because of failures that hit one and all alike."""
_MORE_ATTEMPTS: Final = 3
"""Attempts at most where many requests fail, as a multiple of ``n_attempts``."""


class Sender:
    """One endpoint's retries, pace and stragglers; to be used inside the event loop alone.

    Args:
        config: How to talk to the endpoint.
        open_client: Makes the client at the first request.
        meter: Counts what happens.
        load: How many requests may be in flight.
        places: Where a chain waits without its place.
        trouble: Is told of failures.
    """

    def __init__(
        self,
        config: EngineConfig,
        open_client: Callable[[], Client],
        *,
        meter: Meter,
        load: Load,
        places: Slots,
        trouble: Trouble,
    ) -> None:
        self._config = config
        self._role = WORDS[config.role]
        self._open_client = open_client
        self._client: Client | None = None
        self._meter = meter
        self._load = load
        self._pacing = Pacing()
        self._places = places
        self._trouble = trouble
        self._turn = asyncio.Lock()
        self._random = random.Random(0)  # noqa: S311 - jitter of waits
        self._stragglers = Stragglers()
        self._in_flight: set[InFlight] = set()
        self._stopped: dict[tuple[str, Shown], JudgeStoppedError] = {}
        """Model and what it is shown to why nothing more of that is asked."""
        self._sampling = ExplicitSampling(config.sampling, n_replicas=len(config.urls))
        self._refused = RefusedParameters(self._role, DIALECTS[config.api].not_taken)
        self._last_success_s = -inf
        self._failing = 0.0
        """Share of the latest requests that failed, 429 excepted."""

    async def send(self, request: Request, attempt: int) -> Reply:
        """The reply to a request, however often it has to be sent.

        Raises:
            JudgeStoppedError: If nothing more can be asked of this model, or nothing that shows it
                what this request does.
            JudgeRequestError: If this request is refused, or given up on.
        """
        shown = shown_in(request.messages)
        started_s = time.monotonic()
        failed: FailedAttempts | None = None
        while True:
            self._check(request.model, shown)
            if not self._pacing.take(time.monotonic()):
                await self._take_turn()
                self._check(request.model, shown)
            flight = self._flight(request, n_timeouts=failed.n_timeouts if failed else 0)
            try:
                reply = await self._watched(request, attempt, flight)
            except JudgeStoppedError as error:
                self.stop(request.model, error, shown)
                raise
            except JudgeUnavailableError as error:
                self._note(error, flight)
                if failed is None:
                    failed = FailedAttempts(started_s, since_s=time.monotonic())
                self._give_up_or_go_on(request, error, failed, flight)
                await self._places.without_place(self._back_off(failed, error))
            else:
                self._last_success_s = time.monotonic()
                self._failing -= self._failing / _FAILURES_N
                if self._config.mode == "now":
                    self._answered(flight, self._last_success_s)
                self._meter.count_call(request.model, reply.input_tokens, reply.output_tokens)
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

    def copy_stragglers(self) -> None:
        """Send a second copy of what takes far longer than others do, within bounds."""
        threshold_s = self._stragglers.threshold_s()
        if threshold_s is None or self._config.mode == "batch":
            return
        oldest_s = time.monotonic() - threshold_s
        for entry in self._in_flight:
            if entry.latest_s < oldest_s and self._stragglers.may_copy():
                self._meter.n_copies += 1
                entry.latest_s = time.monotonic()
                entry.copies.append(self._places.spawn(self._copy(entry)))

    @property
    def n_in_flight(self) -> int:
        """Requests sent and not answered."""
        return len(self._in_flight)

    def first_due_s(self) -> float:
        """When the time of the first request in flight is up; there must be one."""
        # A copy gives it no more time: it ends with the original.
        return min(entry.flight.sent_s + entry.flight.given_s for entry in self._in_flight)

    async def close(self) -> None:
        """Close the client."""
        if self._client is not None:
            await self._client.close()

    def _check(self, model: str, shown: Shown) -> None:
        stopped = self._stopped.get((model, shown))
        if stopped is not None:
            raise JudgeStoppedError(str(stopped))

    def _flight(self, request: Request, *, n_timeouts: int) -> Flight:
        """A request that goes out now."""
        # Requests of one step of a protocol take about as long as one another.
        kind, timeout_s = request.protocol, request.timeout_s
        given_s = timeout_s
        if self._config.mode == "now":
            given_s = self._load.time_for(kind, timeout_s, n_timeouts)
        n_in_flight = len(self._in_flight) + 1
        return Flight(kind, timeout_s, given_s, time.monotonic(), n_in_flight, self._load.limit)

    def _note(self, error: JudgeUnavailableError, flight: Flight) -> None:
        now_s = time.monotonic()
        self._meter.n_retried += 1
        self._trouble.failed(error, flight.sent_s, now_s)
        if error.rate_limited:
            self._meter.n_rate_limited += 1
            self._pacing.on_rate_limit(now_s, flight.sent_s)
        else:
            self._failing += (1.0 - self._failing) / _FAILURES_N
        if error.timed_out and self._config.mode == "now":
            self._load.on_timeout(flight, now_s)

    def _answered(self, flight: Flight, now_s: float) -> None:
        """More may be in flight now: not first when this one's chain ends, which may ask on."""
        limit = self._load.limit
        self._load.on_reply(flight, now_s)
        if self._load.limit > limit:
            self._places.fill()

    async def _take_turn(self) -> None:
        """Wait until the endpoint's rate allows one more request; in the order of asking."""
        async with self._turn:
            while not self._pacing.take(time.monotonic()):
                await asyncio.sleep(self._pacing.wait_s())

    async def _watched(self, request: Request, attempt: int, flight: Flight) -> Reply:
        """One completion; where it takes far longer than others do, the first of its copies."""
        entry = InFlight(request, attempt, flight, flight.sent_s, asyncio.current_task())
        self._in_flight.add(entry)
        try:
            reply = await self._complete(request, attempt, flight.given_s)
        except asyncio.CancelledError:
            if entry.reply is None:
                raise
            reply = entry.reply
        finally:
            self._in_flight.discard(entry)
            for copy in entry.copies:
                copy.cancel()
        self._stragglers.on_reply(time.monotonic() - flight.sent_s)
        return reply

    async def _copy(self, entry: InFlight) -> None:
        try:
            self._check(entry.request.model, shown_in(entry.request.messages))
            reply = await self._complete(entry.request, entry.attempt, entry.flight.given_s)
        except JudgeError:
            return  # the original is still under way
        except Exception as error:  # noqa: BLE001 - as above
            words = scrub(repr(error), self._config.api_key, *self._config.urls)
            logger.error("a second copy of a request failed: {}", words)
            return
        if entry in self._in_flight and entry.reply is None and entry.task is not None:
            entry.reply = reply
            # Ends the wait for the original; `_watched` then finds the reply.
            entry.task.cancel()

    async def _complete(self, request: Request, attempt: int, given_s: float) -> Reply:
        """One completion of the model that was asked for."""
        send = partial(self._send_once, attempt, given_s)
        explicitly = partial(self._sampling.send, send=send)
        reply = await self._refused.send(request, attempt, send=explicitly)
        return self._named(reply, request.model)

    def _named(self, reply: Reply, model: str) -> Reply:
        """A reply of the model that was asked for; another one's, to a copy too, ends judging."""
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

    async def _send_once(self, attempt: int, given_s: float, request: Request) -> Reply:
        """One completion; where its model cannot see what it is shown, that is the error's word."""
        if self._client is None:
            self._client = self._open_client()
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

    def _give_up_or_go_on(
        self, request: Request, error: JudgeUnavailableError, failed: FailedAttempts, flight: Flight
    ) -> None:
        """After a failure: is it this request, an outage that may pass, or the end?"""
        now_s, last_success_s = time.monotonic(), self._last_success_s
        failed.add(error, flight, now_s, last_success_s)
        n_attempts = self._config.n_attempts
        is_too_long = now_s - failed.started_s - failed.timed_out_s > self._config.patience_s
        # A batch that ended without a reply is no outage: those are waited for before it ends.
        is_batch_over = self._config.mode == "batch" and failed.n_failed >= n_attempts
        if (
            is_batch_over
            or failed.n_alone >= self._attempts()
            or (is_too_long and last_success_s >= failed.since_s)
        ):
            # The time that a gateway gives (504) is not ours to set.
            is_ours = error.timed_out and error.status is None
            advice = f"; {self._role.timeout} gives more time" if is_ours else ""
            raise JudgeRequestError(f"gave up on this request: {error}{advice}") from error
        silent_s = now_s - max(failed.since_s, last_success_s)
        # One that never answered is given no time: it may be a wrong URL.
        patience_s = self._config.outage_patience_s if last_success_s > -inf else 0.0
        if is_too_long or (failed.n_failed >= n_attempts and silent_s > patience_s):
            stopped = JudgeStoppedError(self._silence(now_s, failed, error))
            self.stop(request.model, stopped, shown_in(request.messages))
            raise stopped from error

    def _silence(self, now_s: float, failed: FailedAttempts, error: JudgeUnavailableError) -> str:
        """What is said of an endpoint that answers nothing any more, and since when it does so."""
        last_s = self._last_success_s
        since = "it has given none yet"
        if last_s > -inf:
            since = f"the last one came at {clock(last_s - now_s)}"
        return (
            f"the {self._role.who} gave no reply to any request for "
            f"{now_s - max(failed.started_s, last_s):.0f} s ({since}), {self._role.work} stopped: "
            f"{error}"
        )

    def _attempts(self) -> int:
        """Failures after which it must be the request: more where many requests fail."""
        n_attempts = self._config.n_attempts
        # The chance of so many failures in a row is the share to their power.
        n_by_chance = log(_LOST) / log(min(0.99, max(1e-9, self._failing)))
        return int(min(_MORE_ATTEMPTS * n_attempts, max(n_attempts, n_by_chance)))

    async def _back_off(self, failed: FailedAttempts, error: JudgeUnavailableError) -> None:
        doublings = failed.n_failures - 1
        if failed.is_alone:
            doublings = min(doublings, _LIVELY_DOUBLINGS)
        ceiling_s = min(self._config.max_backoff_s, self._config.backoff_s * 2**doublings)
        wait_s = ceiling_s * self._random.uniform(0.5, 1.0)
        # A wild header must not hang the run: patience is the bound.
        asked_s = min(error.retry_after_s or 0.0, self._config.patience_s)
        await asyncio.sleep(max(wait_s, asked_s))
