"""Sends requests until they are answered, or until it is clear that they cannot be."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf, log
from typing import TYPE_CHECKING, Final

from loguru import logger

from lmms_eval_captions.judges.errors import (
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
    ParameterRefusedError,
)
from lmms_eval_captions.judges.explicit_sampling import ExplicitSampling
from lmms_eval_captions.judges.load import Flight, Load
from lmms_eval_captions.judges.model_names import check_name
from lmms_eval_captions.judges.pacing import Pacing
from lmms_eval_captions.judges.redaction import scrub
from lmms_eval_captions.judges.request import Reply, Request, without
from lmms_eval_captions.judges.roles import WORDS
from lmms_eval_captions.judges.sight import SHOWN, Shown, cannot_see, shown_in
from lmms_eval_captions.judges.stragglers import Stragglers

if TYPE_CHECKING:
    from lmms_eval_captions.judges.budget import Client
    from lmms_eval_captions.judges.engine import EngineConfig
    from lmms_eval_captions.judges.meter import Meter
    from lmms_eval_captions.judges.places import Places
    from lmms_eval_captions.judges.trouble import Trouble


_WITHOUT: Final = {
    "logprobs": "scores will be plain numbers, not expectations",
    "max_tokens": "max_completion_tokens is sent in its place, which also counts reasoning",
    "temperature": (
        "the {role.who} chooses its temperature, so {role.results} vary more between runs"
    ),
    "seed": "requests are sent without, so that nobody can draw the same {role.results} again",
}
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
        places: Places,
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
        self._told = trouble
        self._turn = asyncio.Lock()
        self._random = random.Random(0)  # noqa: S311 - jitter of waits
        self._stragglers = Stragglers()
        self._in_flight: set[_InFlight] = set()
        self._stopped: dict[tuple[str, Shown], JudgeStoppedError] = {}
        """Model and what it is shown to why nothing more of that is asked."""
        self._sampling = ExplicitSampling(config.sampling)
        self._refused: dict[str, list[str]] = {}
        """Model to the parameters that it does not take."""
        self._last_success_s = -inf
        self._failing = 0.0
        """Share of the latest requests that failed, 429 excepted."""

    async def send(self, request: Request, body: bytes) -> Reply:
        """The reply to a request, however often it has to be sent.

        Raises:
            JudgeStoppedError: If nothing more can be asked of this model, or nothing that shows it
                what this request does.
            JudgeRequestError: If this request is refused, or given up on.
        """
        shown = shown_in(request.messages)
        started_s = time.monotonic()
        trouble: _Trouble | None = None
        while True:
            self._check(request.model, shown)
            if not self._pacing.take(time.monotonic()):
                await self._take_turn()
                self._check(request.model, shown)
            flight = self._flight(request, n_timeouts=trouble.n_timeouts if trouble else 0)
            try:
                reply = await self._watched(request, body, flight)
            except JudgeStoppedError as error:
                self.stop(request.model, error, shown)
                raise
            except JudgeUnavailableError as error:
                self._note(error, flight)
                if trouble is None:
                    trouble = _Trouble(started_s, since_s=time.monotonic())
                self._give_up_or_go_on(request, error, trouble, flight)
                await self._places.without_place(self._back_off(trouble, error))
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
        # A copy ends with the request: it has no time of its own.
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
        # Requests that differ in their protocol's step alone take alike.
        kind, timeout_s = request.protocol, request.timeout_s
        given_s = timeout_s
        if self._config.mode == "now":
            given_s = self._load.time_for(kind, timeout_s, n_timeouts)
        n_in_flight = len(self._in_flight) + 1
        return Flight(kind, timeout_s, given_s, time.monotonic(), n_in_flight, self._load.limit)

    def _note(self, error: JudgeUnavailableError, flight: Flight) -> None:
        now_s = time.monotonic()
        self._meter.n_retried += 1
        self._told.failed(error, flight.sent_s, now_s)
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

    async def _watched(self, request: Request, body: bytes, flight: Flight) -> Reply:
        """One completion; where it takes far longer than others do, the first of its copies."""
        entry = _InFlight(request, body, flight, flight.sent_s, asyncio.current_task())
        self._in_flight.add(entry)
        try:
            reply = await self._complete(request, body, flight.given_s)
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

    async def _copy(self, entry: _InFlight) -> None:
        try:
            self._check(entry.request.model, shown_in(entry.request.messages))
            reply = await self._complete(entry.request, entry.body, entry.flight.given_s)
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

    async def _complete(self, request: Request, body: bytes, given_s: float) -> Reply:
        """One completion, without the parameters that the model is known to refuse.

        The store's key stays that of the asking, so that a rerun finds the reply at once, and that
        requests which differ in what is refused alone (their seeds) have a reply each.
        """
        send = partial(self._send_body, request, body, given_s)
        refused = self._refused.setdefault(request.model, [])
        plain, left_out = body, list[str]()
        for parameter in refused:
            plain = _leave_out(plain, parameter, left_out)
        while True:
            try:
                reply = await self._sampling.send(request.model, request.params, plain, send=send)
            except ParameterRefusedError as error:
                n_left_out = len(left_out)
                plain = _leave_out(plain, error.parameter, left_out)
                if len(left_out) == n_left_out:
                    raise
                if error.parameter not in refused:
                    refused.append(error.parameter)
                    words = _WITHOUT[error.parameter].format(role=self._role)
                    logger.warning("{}: {}", words, error)
            else:
                reply = self._named(reply, request.model)
                return replace(reply, refused=tuple(left_out)) if left_out else reply

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

    async def _send_body(
        self, request: Request, asked: bytes, given_s: float, body: bytes
    ) -> Reply:
        """One completion; where its model cannot see what it is shown, that is the error's word."""
        if self._client is None:
            self._client = self._open_client()
        try:
            return await self._client.complete(body, timeout_s=given_s, asked=asked)
        except JudgeError as error:
            shown = shown_in(request.messages)
            if not shown or not cannot_see(str(error)):
                raise
            advice = self._role.video if shown == "a video" else self._role.sight
            raise JudgeStoppedError(
                f"the {self._role.who} {request.model!r} cannot be shown {shown}: {error}; {advice}"
            ) from error

    def _give_up_or_go_on(
        self, request: Request, error: JudgeUnavailableError, trouble: _Trouble, flight: Flight
    ) -> None:
        """After a failure: is it this request, an outage that may pass, or the end?"""
        now_s, last_success_s = time.monotonic(), self._last_success_s
        trouble.add(error, flight, now_s, last_success_s)
        n_attempts = self._config.n_attempts
        is_too_long = now_s - trouble.started_s - trouble.timed_out_s > self._config.patience_s
        # A batch that ended without a reply is no outage: those are waited for before it ends.
        is_batch_over = self._config.mode == "batch" and trouble.n_failed >= n_attempts
        if (
            is_batch_over
            or trouble.n_alone >= self._attempts()
            or (is_too_long and last_success_s >= trouble.since_s)
        ):
            advice = f"; {self._role.timeout} gives more time" if error.timed_out else ""
            raise JudgeRequestError(f"gave up on this request: {error}{advice}") from error
        silent_s = now_s - max(trouble.since_s, last_success_s)
        # One that never answered is given no time: it may be a wrong URL.
        patience_s = self._config.outage_patience_s if last_success_s > -inf else 0.0
        if is_too_long or (trouble.n_failed >= n_attempts and silent_s > patience_s):
            stopped = JudgeStoppedError(self._silence(now_s, trouble, error))
            self.stop(request.model, stopped, shown_in(request.messages))
            raise stopped from error

    def _silence(self, now_s: float, trouble: _Trouble, error: JudgeUnavailableError) -> str:
        """What is said of an endpoint that answers nothing any more, and since when it does so."""
        last_s = self._last_success_s
        since = "it has given none yet"
        if last_s > -inf:
            clock = time.strftime("%H:%M:%S", time.localtime(time.time() - (now_s - last_s)))
            since = f"the last one came at {clock}"
        return (
            f"the {self._role.who} gave no reply to any request for "
            f"{now_s - max(trouble.started_s, last_s):.0f} s ({since}), {self._role.work} stopped: "
            f"{error}"
        )

    def _attempts(self) -> int:
        """Failures after which it must be the request: more where many requests fail."""
        n_attempts = self._config.n_attempts
        # The chance of so many failures in a row is the share to their power.
        n_by_chance = log(_LOST) / log(min(0.99, max(1e-9, self._failing)))
        return int(min(_MORE_ATTEMPTS * n_attempts, max(n_attempts, n_by_chance)))

    async def _back_off(self, trouble: _Trouble, error: JudgeUnavailableError) -> None:
        doublings = trouble.n_failures - 1
        if trouble.is_alone:
            doublings = min(doublings, _LIVELY_DOUBLINGS)
        ceiling_s = min(self._config.max_backoff_s, self._config.backoff_s * 2**doublings)
        wait_s = ceiling_s * self._random.uniform(0.5, 1.0)
        # A wild header must not hang the run: patience is the bound.
        asked_s = min(error.retry_after_s or 0.0, self._config.patience_s)
        await asyncio.sleep(max(wait_s, asked_s))


def _leave_out(body: bytes, parameter: str, left_out: list[str]) -> bytes:
    """The body without a parameter, which is then added to the list if it was in it."""
    plain = without(body, parameter)
    if plain != body:
        left_out.append(parameter)
    return plain


@dataclass(slots=True)
class _Trouble:
    """The failures of one request."""

    started_s: float
    """When it was first sent."""
    since_s: float
    """When it first failed."""
    n_failures: int = 0
    n_failed: int = 0
    """Failures, 429 excepted; one that took several times the time-out counts as so many."""
    n_timeouts: int = 0
    timed_out_s: float = 0.0
    """Seconds that went by until it timed out."""
    n_alone: int = 0
    """Those of them before which others got through: it is the request, not the endpoint."""
    is_alone: bool = False
    """Whether others got through before the latest failure, of whatever kind."""
    latest_s: float = -inf

    def add(
        self, error: JudgeUnavailableError, flight: Flight, now_s: float, last_success_s: float
    ) -> None:
        """Count one more, given when any request was last answered."""
        self.n_failures += 1
        n_times = 1
        if error.timed_out:
            self.n_timeouts += 1
            self.timed_out_s += now_s - flight.sent_s
            n_times = max(1, round((now_s - flight.sent_s) / flight.timeout_s))
        self.is_alone = last_success_s >= max(self.started_s, self.latest_s)
        if not error.rate_limited:
            self.n_failed += n_times
            self.n_alone += n_times * self.is_alone
        self.latest_s = now_s


@dataclass(slots=True, eq=False)
class _InFlight:
    """A request on its way, and the copies that were sent after it where it is a straggler."""

    request: Request
    body: bytes
    flight: Flight
    latest_s: float
    """When it, or its latest copy, was sent."""
    task: asyncio.Task[object] | None
    copies: list[asyncio.Task[None]] = field(default_factory=list)
    reply: Reply | None = None
    """Reply to the first copy that was answered."""
