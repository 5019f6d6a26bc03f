"""Answers requests: from the store, from the same request in flight, or from the endpoint."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Final, NamedTuple, TypeVar

from loguru import logger

from lmms_eval_captions.judges import errors
from lmms_eval_captions.judges.endpoint.adapt import Adaptations, is_own, is_same_name, served_name
from lmms_eval_captions.judges.endpoint.dialects import DIALECTS
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.failures import FORBIDDEN, WORDS
from lmms_eval_captions.judges.endpoint.limits import Flight, Slots
from lmms_eval_captions.judges.endpoint.progress import Meter, Progress
from lmms_eval_captions.judges.endpoint.replies import strip_reasoning
from lmms_eval_captions.judges.endpoint.request import (
    LEXICAL,
    NO_USAGE,
    SHOWN,
    UNREADABLE,
    Asked,
    Client,
    Reply,
    Request,
    Shown,
    Usage,
)
from lmms_eval_captions.judges.endpoint.store import StoredReplies, UnsavedReplyError
from lmms_eval_captions.judges.errors import JudgeStoppedError, JudgeUnavailableError

T = TypeVar("T")

_OWN_ATTEMPTS: Final = 4
"""Attempts at a request that is answered without a reply in the answer."""
_MOST_FRUITLESS: Final = 50
"""Requests in a row that are given up, after which the endpoint is taken to be broken."""
_MOST_FORBIDDEN: Final = 3
"""Requests in a row that are answered 403, before any was answered, after which it is the key."""
_MANY_FAIL: Final = 0.2
_MORE_ATTEMPTS: Final = 3
"""Attempts, as a multiple, if more than that share of requests fails."""
_LIVELY_DOUBLINGS: Final = 2
"""Most doublings of the back-off while other requests are answered."""
_NOISE_DOUBLINGS: Final = -2
"""The same if requests are refused by chance, at any rate."""


@dataclass(slots=True)
class _Attempts:
    """Failed attempts at one request; seconds of ``time.monotonic``."""

    started_s: float
    since_s: float
    """Time of the first failure."""
    latest_s: float = -inf
    n_failures: int = 0
    n_failed: int = 0
    """Failures except 429; one that took several time-outs counts as so many."""
    n_own: int = 0
    n_timeouts: int = 0
    timed_out_s: float = 0.0
    n_alone: int = 0
    """Part of ``n_failed`` before which other requests were answered."""
    n_lonely: int = 0
    """The latest of ``n_failed`` in a row in which no other question was under way."""
    is_alone: bool = False


class Turn(NamedTuple):
    """Place of a chain in line."""

    order: int
    """Requests with a lower one go out first."""
    about: bytes | None
    """Digest of the caption, which chooses the replica."""
    is_cancelled: Callable[[], bool]


class Asker:
    """Gives each request its outcome; for the event loop alone."""

    def __init__(
        self,
        config: EngineConfig,
        open_client: Callable[[], Client],
        stored: StoredReplies,
        slots: Slots,
        meter: Meter,
        progress: Progress,
    ) -> None:
        self._config, self._words = config, WORDS[config.role]
        self._open_client = open_client
        self._client: Client | None = None
        self._stored, self._slots = stored, slots
        self._concurrency, self._pace = slots.concurrency, slots.pace
        self._meter, self._progress = meter, progress
        dialect = DIALECTS[config.api]
        self._names_models = dialect.names_models
        self._adaptations = Adaptations(
            self._words,
            config.added_params,
            not_taken=dialect.not_taken,
            n_replicas=len(config.urls),
            is_batch=config.mode == "batch",
        )
        self._random = random.Random(0)  # noqa: S311 - jitter of waits
        self._under_way: dict[bytes, asyncio.Future[Reply]] = {}
        self._until: dict[bytes, int] = {}
        """Key of a request to the attempt before which it is asked again in this run."""
        self.in_flight: set[Flight] = set()
        self.n_idle = 0
        """Requests that wait to be sent again, or for the same request of another question."""
        self._n_twins = 0
        self._stopped: dict[tuple[str, Shown], JudgeStoppedError] = {}
        self._last_success_s = -inf
        self._had_outage = False
        self._failing: set[int] = set()
        """Requests that failed since the last reply."""
        self._share_failing = 0.0
        self._n_fruitless = self._n_forbidden = 0

    async def ask(
        self, turn: Turn, request: Request, read: Callable[[Reply], T | None]
    ) -> Asked[T]:
        """Ask, read the reply, and ask again if it cannot be read; see :class:`.request.Ask`."""
        if turn.about is not None:
            request = replace(request, about=turn.about)
        usage, reply, cached, attempt = NO_USAGE, Reply(""), True, 0
        failure: errors.Failure
        try:
            while attempt == 0 or self._has_attempt(request, attempt):
                reply, from_store = await self._reply(turn, request, attempt)
                cached = cached and from_store
                used = _usage(reply, from_store=from_store)
                usage = used if usage is NO_USAGE else usage + used
                value = read_safely(read, reply)
                if value is not None:
                    return Asked(value, reply.text, None, cached=cached, usage=usage)
                if self._config.ask_again and not from_store:
                    self._ask_until(request, attempt)
                attempt += 1
                if reply.is_final:
                    break
            reason = f"{UNREADABLE}, asked {attempt} times{self._hint(reply)}"
            failure = "unreadable"
        except UnsavedReplyError as error:
            reply, reason, failure = error.reply, str(error), "stopped"
        except errors.JudgeError as error:
            reason, failure = str(error), error.failure
        self._meter.n_unscored += 1
        return Asked(None, reply.text, reason, cached=False, usage=usage, failure=failure)

    def stop(self, model: str, error: JudgeStoppedError, shown: Shown | None = None) -> None:
        """Ask nothing more of a model; the first reason counts."""
        for kind in SHOWN if shown is None else (shown,):
            self._stopped.setdefault((model, kind), error)
        self._progress.stopped(model, error)

    def stopped(self, model: str, shown: Shown) -> str | None:
        """Return why nothing more is asked of a model; ``None`` if it is."""
        error = self._stopped.get((model, shown))
        return None if error is None else str(error)

    def forget_outages(self) -> None:
        """Ask again after an outage."""
        for key, error in list(self._stopped.items()):
            if isinstance(error, errors.EndpointSilentError):
                del self._stopped[key]
        self._n_fruitless = 0

    async def close(self) -> None:
        """Close the client."""
        if self._client is not None:
            await self._client.close()

    def _has_attempt(self, request: Request, attempt: int) -> bool:
        """Return whether a request whose replies so far cannot be read has a further attempt.

        Replies of earlier runs that asked again are read.
        """
        if attempt <= self._config.n_rereads:
            return True
        if self._stored.has(request.model, request.key(attempt)):
            return True
        return self._config.ask_again and attempt < self._ask_until(request, attempt)

    def _ask_until(self, request: Request, attempt: int) -> int:
        return self._until.setdefault(request.key(0), attempt + 1 + self._config.n_rereads)

    async def _reply(self, turn: Turn, request: Request, attempt: int) -> tuple[Reply, bool]:
        """Return a reply, and whether it cost nothing."""
        if request.model == LEXICAL:
            return Reply(request.stand_in(), "stop", is_final=True), False
        key = request.key(attempt)
        while True:
            stored = self._stored.get(request.model, key)
            if stored is not None and (
                not self._names_models or is_own(stored.model, request.model, self._config.alias)
            ):
                self._meter.from_store[stored.endpoint or "an unknown endpoint"] += 1
                return self._named(stored, request), True
            twin = self._under_way.get(key)
            if twin is None or twin.done():
                return await self._send_once(turn, request, attempt, key), False
            self.n_idle += 1
            self._n_twins += 1
            self._slots.hand_out_soon()
            try:
                reply = await asyncio.shield(twin)
            except errors.TooLateError:
                if request.is_too_late or turn.is_cancelled():
                    raise
            else:
                self._meter.n_shared += 1
                return reply, True
            finally:
                self.n_idle -= 1
                self._n_twins -= 1

    async def _send_once(self, turn: Turn, request: Request, attempt: int, key: bytes) -> Reply:
        twin: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._under_way[key] = twin
        self._meter.n_asking += 1
        try:
            reply = await self._send(turn, request, attempt, key)
        except BaseException as error:
            is_usual = isinstance(error, Exception)
            twin.set_exception(error if is_usual else JudgeStoppedError(f"ended by {error!r}"))
            twin.exception()  # seen: nobody may be waiting
            raise
        else:
            twin.set_result(reply)
            return reply
        finally:
            self._meter.n_asking -= 1
            self._under_way.pop(key, None)

    async def _send(self, turn: Turn, request: Request, attempt: int, key: bytes) -> Reply:
        """Send a request until it is answered or given up; the reply is on disk."""
        failed: _Attempts | None = None
        if not self._stored.is_writable:
            self._stored.require_writable()
        while True:
            self._check(turn, request)
            await self._slots.acquire(turn.order, request.until_s)
            given_s = request.timeout_s
            if self._config.mode == "now":
                given_s = self._concurrency.time_for(given_s, failed.n_timeouts if failed else 0)
            flight = Flight(request.timeout_s, given_s, time.monotonic())
            try:
                self._check(turn, request)
                reply = await self._fly(request, attempt, flight)
                self._count(request, reply, flight)
                await self._stored.save(request.model, key, reply)
                return reply if reply.model is None else self._named(reply, request)
            except UnsavedReplyError as error:
                self.stop(request.model, JudgeStoppedError(str(error.__cause__)))
                raise
            except JudgeStoppedError as error:
                raise self._stopping(request, error) from error
            except JudgeUnavailableError as error:
                failed = failed or _Attempts(flight.sent_s, since_s=time.monotonic())
                wait_s = self._after_failure(request, error, failed, flight)
            finally:
                self._slots.release()
            self.n_idle += 1
            try:
                await asyncio.sleep(wait_s)
            finally:
                self.n_idle -= 1

    def _check(self, turn: Turn, request: Request) -> None:
        """Raise if a request is not to be sent any more."""
        error = self._stopped and self._stopped.get((request.model, request.shown))
        if error:
            raise type(error)(str(error))
        if turn.is_cancelled() or request.is_too_late:
            raise errors.TooLateError

    def _stopping(self, request: Request, error: JudgeStoppedError) -> errors.JudgeError:
        """Stop a model; a 403 is about this request alone (moderation) unless it repeats."""
        if error.status == 403:
            self._n_forbidden += 1
            is_known = self._last_success_s > -inf
            if self._n_forbidden < (_MOST_FRUITLESS if is_known else _MOST_FORBIDDEN):
                refused = errors.JudgeRequestError(str(error).removesuffix(f" ({FORBIDDEN})"))
                refused.status = 403
                return refused
        is_blind = isinstance(error, errors.BlindModelError)
        self.stop(request.model, error, request.shown if is_blind else None)
        return error

    async def _fly(self, request: Request, attempt: int, flight: Flight) -> Reply:
        client = self._client = self._client or self._open_client()
        n_sent = 0

        async def send(adapted: Request) -> Reply:
            nonlocal n_sent
            n_sent += 1
            if n_sent > 1 and (wait_s := self._pace.send_again(time.monotonic())):
                await asyncio.sleep(wait_s)
            return await client.complete(adapted, attempt, timeout_s=flight.given_s)

        self.in_flight.add(flight)
        try:
            reply = await self._adaptations.send(request, attempt, send)
        finally:
            self.in_flight.discard(flight)
        # Under an alias the name is kept: another run may not have the alias.
        if reply.model is not None and is_same_name(reply.model, request.model):
            return replace(reply, model=None)
        return reply

    def _count(self, request: Request, reply: Reply, flight: Flight) -> None:
        self._last_success_s, self._had_outage = time.monotonic(), False
        self._n_fruitless = self._n_forbidden = 0
        if self._failing:
            self._failing.clear()
        self._share_failing *= 0.99
        self._meter.count_call(request.model, reply)
        if self._config.mode == "now":
            self._pace.on_answer()
            limit = self._concurrency.limit
            self._concurrency.on_reply(flight, self._last_success_s)
            if self._concurrency.limit > limit:
                self._slots.hand_out_soon()

    def _named(self, reply: Reply, request: Request) -> Reply:
        """Return a reply with its model's name if that says more; stop at another model's."""
        if not self._names_models:
            return reply
        config = self._config
        name = served_name(reply.model, request.model, config.alias, config.urls, config.role)
        return reply if name == reply.model else replace(reply, model=name)

    def _after_failure(
        self, request: Request, error: JudgeUnavailableError, failed: _Attempts, flight: Flight
    ) -> float:
        """Return the seconds until a request that failed is sent again."""
        now_s = time.monotonic()
        elapsed_s, n_times = now_s - flight.sent_s, 1
        self._meter.retried[error.kind] += 1
        self._progress.failed(error)
        if error.rate_limited:
            n_times = 0
            if not error.told_limit:
                self._pace.on_refused(now_s, flight.sent_s)
        else:
            self._share_failing += (1.0 - self._share_failing) / 100
            self._failing.add(id(failed))
        if error.timed_out:
            n_times = max(1, round(elapsed_s / flight.timeout_s))
            failed.n_timeouts += 1
            failed.timed_out_s += elapsed_s
            if self._config.mode == "now":
                self._concurrency.on_timeout(flight, now_s)
        failed.n_failures += 1
        failed.n_failed += n_times
        failed.n_own += error.is_own
        failed.is_alone = self._last_success_s >= max(failed.started_s, failed.latest_s)
        failed.n_alone += n_times * failed.is_alone
        failed.latest_s = now_s
        # Only different requests that fail are an outage, or one that reaches nobody. As long as
        # other questions are under way, these will tell.
        is_outage = error.kind == errors.NOT_CONNECTED or len(self._failing) > 1
        has_others = self._meter.n_submitted - self._meter.n_done - self._n_twins > 1
        failed.n_lonely = 0 if is_outage or has_others else failed.n_lonely + n_times
        self._give_up(request, error, failed, is_outage=is_outage)
        doublings = min(failed.n_failures - 1, 30)
        if failed.is_alone:
            is_noise = error.rate_limited and self._pace.is_noise
            doublings = _NOISE_DOUBLINGS if is_noise else min(doublings, _LIVELY_DOUBLINGS)
        config = self._config
        wait_s = min(config.max_backoff_s, config.backoff_s * 2.0**doublings)
        wait_s *= self._random.uniform(0.5, 1.0)
        return max(wait_s, min(error.retry_after_s or 0.0, config.patience_s))

    def _give_up(
        self, request: Request, error: JudgeUnavailableError, failed: _Attempts, *, is_outage: bool
    ) -> None:
        """Raise if a request is not to be sent again."""
        config, now_s = self._config, failed.latest_s
        n_attempts = config.n_attempts * (_MORE_ATTEMPTS if self._share_failing > _MANY_FAIL else 1)
        is_too_long = now_s - failed.started_s - failed.timed_out_s > config.patience_s
        has_tried = failed.n_failed >= config.n_attempts
        if (
            failed.n_own >= _OWN_ATTEMPTS
            or failed.n_alone >= n_attempts
            or failed.n_lonely >= config.n_attempts
            or (has_tried and config.mode == "batch")
            or (is_too_long and self._last_success_s >= failed.since_s)
        ):
            self._n_fruitless += 1
            if self._n_fruitless >= _MOST_FRUITLESS:
                what = f"no usable answer to {_MOST_FRUITLESS} requests in a row"
                raise self._outage(request, what, error) from error
            # The time that a gateway gives (504) cannot be set here.
            is_ours = error.timed_out and error.status is None
            advice = f"; {self._words.timeout} gives more time" if is_ours else ""
            raise errors.GaveUpError(f"gave up on this request: {error}{advice}") from error
        # An endpoint that never answered gets no extra time: its address may be wrong.
        is_known = self._last_success_s > -inf and not self._had_outage
        silent_s = now_s - max(failed.since_s, self._last_success_s)
        is_silent = is_outage and silent_s > (config.outage_patience_s if is_known else 0.0)
        if is_too_long or (has_tried and is_silent):
            silent_s = now_s - max(failed.started_s, self._last_success_s)
            ever = "" if self._last_success_s > -inf else " (it has given none yet)"
            what = f"no reply to any request for {silent_s:.0f} s{ever}"
            raise self._outage(request, what, error) from error

    def _outage(self, request: Request, what: str, cause: Exception) -> JudgeStoppedError:
        """Stop a request's model, and return the error."""
        self._had_outage = True
        words = self._words
        never = self._last_success_s == -inf
        kind = errors.NeverAnsweredError if never else errors.EndpointSilentError
        error = kind(f"the {words.who} gave {what}, {words.work} stopped: {cause}")
        self.stop(request.model, error, request.shown)
        return error

    def _hint(self, reply: Reply) -> str:
        if reply.finish_reason == "content_filter":
            return "; the last one was withheld by the provider's content filter"
        setting = self._words.max_tokens
        is_thought = reply.is_only_reasoning or (
            bool(reply.text.strip()) and not strip_reasoning(reply.text)
        )
        if reply.finish_reason == "length":
            where = " within its reasoning" if is_thought else ""
            return f"; the last one was cut at max_tokens{where}: raise {setting}"
        if reply.is_only_reasoning:
            return (
                "; the last one is empty and its text is in the reasoning field: start the server "
                "without its reasoning parser, or the model without thinking"
            )
        return "" if reply.text.strip() else "; the last one was empty"


def _usage(reply: Reply, *, from_store: bool) -> Usage:
    served = (reply.model,) if reply.model else ()
    if from_store:
        return Usage(refused=reply.refused, served=served) if reply.refused or served else NO_USAGE
    return Usage(1, reply.input_tokens, reply.output_tokens, reply.refused, served)


def read_safely(read: Callable[[Reply], T | None], reply: Reply) -> T | None:
    """Return what a reply is read as, ``None`` if it is unreadable or reading it fails."""
    try:
        return read(reply)
    except Exception as error:  # noqa: BLE001 - a reply must not cost its caption
        logger.error("reading a reply failed, it counts as unreadable: {!r}", error)
        return None
