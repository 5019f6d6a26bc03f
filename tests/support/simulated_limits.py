"""Endpoints with limits and noise on a simulated clock, and what pacing makes of them.

What is measured here depends on no machine: time passes as the events say. Requests go out as
:class:`Pace` allows, at most so many at once, and there is always one that waits to be sent.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from heapq import heappop, heappush
from math import inf
from typing import Literal

from judge_server import headers_of
from lmms_eval_captions.judges.endpoint.failures import retry_after_s
from lmms_eval_captions.judges.endpoint.limits import AddressLimits, Pace

Headers = Literal["none", "openai", "anthropic", "seconds"]
"""Whose headers an endpoint sends; ``seconds`` are those of the IETF's draft."""
_START = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Limit:
    """A limit as a provider has it: a bucket that fills, or a window that begins anew."""

    rate: float
    most: float = 1.0
    window_s: float = 0.0
    """Length of the window; 0 for a bucket."""

    @property
    def capacity(self) -> float:
        return self.rate * self.window_s if self.window_s else self.most


@dataclass
class _Count:
    limit: Limit
    left: float
    filled_s: float = 0.0

    def fill(self, now_s: float) -> None:
        """Bring it to a moment."""
        window_s = self.limit.window_s
        if not window_s:
            filled = self.left + (now_s - self.filled_s) * self.limit.rate
            self.left = min(self.limit.capacity, filled)
        elif now_s // window_s > self.filled_s // window_s:
            self.left = self.limit.capacity
        self.filled_s = now_s

    def reset_s(self) -> float:
        """Seconds until all of it is there again."""
        window_s = self.limit.window_s
        if window_s:
            return window_s - self.filled_s % window_s
        return (self.limit.capacity - self.left) / self.limit.rate


@dataclass(frozen=True)
class Endpoint:
    requests: Limit | None = None
    tokens: Limit | None = None
    noise: Callable[[float], float] = lambda _: 0.0
    """Share of requests that are refused whatever their rate, by seconds since the start."""
    headers: Headers = "none"
    retry_after_s: float | None = None
    latency_s: float = 0.2
    spread: float = 0.3
    """Latency is up to such a share more, or less."""
    refusal_s: float = 0.01


@dataclass
class Server:
    """An endpoint that is asked."""

    endpoint: Endpoint
    rng: random.Random
    counts: dict[str, _Count] = field(init=False)

    def __post_init__(self) -> None:
        limits = {"requests": self.endpoint.requests, "tokens": self.endpoint.tokens}
        self.counts = {n: _Count(limit, limit.capacity) for n, limit in limits.items() if limit}

    def admit(self, now_s: float, n_tokens: float) -> tuple[bool, dict[str, str]]:
        needed = {"requests": 1.0, "tokens": n_tokens}
        for count in self.counts.values():
            count.fill(now_s)
        is_taken = all(c.left >= needed[n] - 1e-9 for n, c in self.counts.items())
        if is_taken:
            for name, count in self.counts.items():
                count.left -= needed[name]
            # As at a gateway behind the limit: what is refused by chance has been counted.
            is_taken = self.rng.random() >= self.endpoint.noise(now_s)
        headers: dict[str, str] = {}
        if self.endpoint.headers != "none":
            counts = {n: (c.limit.capacity, c.left, c.reset_s()) for n, c in self.counts.items()}
            moment = _START + timedelta(seconds=now_s)
            headers = headers_of(self.endpoint.headers, counts, moment)
        if not is_taken and self.endpoint.retry_after_s is not None:
            headers["Retry-After"] = f"{self.endpoint.retry_after_s:g}"
        return is_taken, headers


@dataclass(frozen=True)
class Span:
    seconds: float
    n_answered: int
    n_sent: int
    n_refused: int
    n_tokens: float = 0.0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.n_answered / self.seconds

    @property
    def refused(self) -> float:
        """Share of what was sent that was refused."""
        return self.n_refused / max(1, self.n_sent)


@dataclass
class Asker:
    """One process that asks: at most ``most`` requests at once, one more whenever it may."""

    server: Server
    most: int = 64
    n_calls: float = inf
    """Requests that are to be answered."""
    patience_s: float = 900.0
    sizes: Callable[[random.Random], float] = lambda _: 1.0
    """Draws the tokens of a request."""
    backoff_s: float = 0.5
    max_rate: float | None = None
    """Requests a second that the user allows at most."""
    limits: AddressLimits = field(init=False)
    pace: Pace = field(init=False)
    n_in_flight: int = 0
    waiting: list[int] = field(default_factory=list)
    """Refusals so far of requests that are to be sent again."""
    timer_s: float = inf
    sent: list[float] = field(default_factory=list)
    """When each was sent, for those who look for gaps."""

    def __post_init__(self) -> None:
        self.limits = AddressLimits(self.patience_s)
        self.pace = Pace([self.limits], self.max_rate)


class Simulation:
    """Processes that ask one endpoint at the same time.

    Args:
        endpoint: What it is like; its parts may be exchanged while it is asked, see :meth:`turn`.
        seed: Of everything that is drawn.
        n_askers: Processes.
        keywords: Of each :class:`Asker`.
    """

    def __init__(
        self, endpoint: Endpoint, *, seed: int = 0, n_askers: int = 1, **keywords: object
    ) -> None:
        self.rng = random.Random(seed)
        self.server = Server(endpoint, random.Random(seed + 1))
        self.askers = [Asker(self.server, **keywords) for _ in range(n_askers)]  # type: ignore[arg-type]  # an Asker's own
        self.now_s = 0.0
        self.n_done = 0
        self._n_pushed = 0
        self._events: list[tuple[float, int, Asker, Callable[[], None]]] = []
        self._counted = [0, 0, 0, 0.0]

    def turn(self, **parts: object) -> None:
        """Change the endpoint from now on."""
        endpoint = replace(self.server.endpoint, **parts)  # type: ignore[arg-type]  # an Endpoint's
        self.server = Server(endpoint, self.server.rng)
        for count in self.server.counts.values():
            count.filled_s = self.now_s
        for asker in self.askers:
            asker.server = self.server

    def run(self, seconds: float = inf) -> Span:
        """Go on for so long, or until all is answered."""
        end_s, before, from_s = self.now_s + seconds, list(self._counted), self.now_s
        for asker in self.askers:
            self._fill(asker)
        while self._events and self._events[0][0] <= end_s:
            self.now_s, _, asker, act = heappop(self._events)
            act()
            self._fill(asker)
        if end_s < inf:
            self.now_s = end_s
        n_answered, n_sent, n_refused, n_tokens = (
            last - first for first, last in zip(before, self._counted, strict=True)
        )
        seconds = max(1e-9, self.now_s - from_s)
        return Span(seconds, int(n_answered), int(n_sent), int(n_refused), n_tokens)

    def _fill(self, asker: Asker) -> None:
        while asker.n_in_flight < asker.most and (asker.n_calls >= 1 or asker.waiting):
            if not asker.pace.take(self.now_s):
                due_s = self.now_s + asker.pace.wait_s()
                if due_s < asker.timer_s or asker.timer_s <= self.now_s:
                    asker.timer_s = due_s
                    self._push(due_s, asker, lambda: None)
                return
            self._send(asker, asker.waiting.pop() if asker.waiting else self._first(asker))

    def _first(self, asker: Asker) -> int:
        asker.n_calls -= 1
        return 0

    def _send(self, asker: Asker, n_refusals: int) -> None:
        endpoint, sent_s, n_tokens = self.server.endpoint, self.now_s, asker.sizes(self.rng)
        asker.n_in_flight += 1
        asker.sent.append(sent_s)
        number = asker.limits.send()
        self._counted[1] += 1
        is_taken, headers = self.server.admit(sent_s, n_tokens)
        spread = 1.0 + endpoint.spread * self.rng.uniform(-1.0, 1.0)
        if is_taken:
            latency_s = endpoint.latency_s * spread

            def answered() -> None:
                asker.n_in_flight -= 1
                self._counted[0] += 1
                self._counted[3] += n_tokens
                asker.limits.hear_answer(headers, number, self.now_s)
                asker.pace.on_answer()

            self._push(sent_s + latency_s, asker, answered)
        else:

            def refused() -> None:
                asker.n_in_flight -= 1
                self._counted[2] += 1
                asked_s = retry_after_s(headers)
                is_told = asker.limits.hear_refusal(headers, number, self.now_s, asked_s)
                if not is_told:
                    asker.pace.on_refused(self.now_s, sent_s)
                self._push(
                    self.now_s + max(self._back_off_s(asker, n_refusals), asked_s or 0.0),
                    asker,
                    lambda: asker.waiting.append(n_refusals + 1),
                )

            self._push(sent_s + endpoint.refusal_s * spread, asker, refused)

    def _back_off_s(self, asker: Asker, n_refusals: int) -> float:
        doublings = -2 if asker.pace.is_noise else min(2, n_refusals)
        return asker.backoff_s * 2.0**doublings * self.rng.uniform(0.5, 1.0)

    def _push(self, due_s: float, asker: Asker, act: Callable[[], None]) -> None:
        self._n_pushed += 1
        heappush(self._events, (due_s, self._n_pushed, asker, act))
