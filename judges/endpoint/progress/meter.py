"""Counts of one run of judging."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from lmms_eval_captions.judges.endpoint.prices import JudgeMode, Prices, load_prices


@dataclass(slots=True)
class Meter:
    """What has been asked, answered and billed so far; written by the engine's thread alone."""

    prices: Prices = field(default_factory=load_prices)
    mode: JudgeMode = "now"
    n_submitted: int = 0
    """Questions (chains of requests) submitted."""
    n_done: int = 0
    n_asking: int = 0
    """Requests that are asked of the endpoint now: in flight, or waiting to be asked (again)."""
    silence: str = ""
    """How long no reply has come, where that is long."""
    n_unscored: int = 0
    n_calls: int = 0
    """Requests answered by the endpoint."""
    n_cached: int = 0
    """Requests answered by the store, or by an identical request in flight."""
    n_shared: int = 0
    """Those that an identical request in flight answered."""
    from_store: Counter[str | None] = field(default_factory=Counter)
    """Endpoint to how many of its replies the store had; ``None`` where it is not known."""
    n_retried: int = 0
    retried: Counter[str] = field(default_factory=Counter)
    """Kind of failure to how many attempts ended so."""
    n_rate_limited: int = 0
    tokens: dict[str, list[int]] = field(default_factory=dict)
    """Model to [input, output] tokens billed in this run."""
    cached_tokens: Counter[str] = field(default_factory=Counter)
    """Model to those of the input tokens that the endpoint had in its cache of prefixes."""
    _busy_s: float = 0.0
    """Seconds with questions under way, until none was the last time."""
    _busy_since_s: float | None = None

    def count_submitted(self, n_questions: int) -> None:
        """Count questions that are under way from now on."""
        self.n_submitted += n_questions
        if self._busy_since_s is None:
            self._busy_since_s = time.monotonic()

    def count_done(self, n_questions: int) -> None:
        """Count questions that are no longer under way."""
        self.n_done += n_questions
        if self.n_done >= self.n_submitted:
            self.rest()

    def rest(self) -> None:
        """Stop the clock until questions are submitted again."""
        self._busy_s, self._busy_since_s = self.seconds, None

    @property
    def seconds(self) -> float:
        """While at least one question was under way, so far."""
        since_s = self._busy_since_s
        return self._busy_s + (0.0 if since_s is None else time.monotonic() - since_s)

    def count_stored(self, endpoint: str | None) -> None:
        """Count one request that the store answered with a reply of an endpoint."""
        self.n_cached += 1
        self.from_store[endpoint] += 1

    def count_shared(self) -> None:
        """Count one request that an identical one in flight answered."""
        self.n_cached += 1
        self.n_shared += 1

    def count_retry(self, kind: str) -> None:
        """Count one attempt that failed in a way that can pass."""
        self.n_retried += 1
        self.retried[kind] += 1

    def count_call(
        self, model: str, input_tokens: int, output_tokens: int, *, cached_tokens: int = 0
    ) -> None:
        """Count one answered request."""
        self.n_calls += 1
        total = self.tokens.setdefault(model, [0, 0])
        total[0] += input_tokens
        total[1] += output_tokens
        if cached_tokens:
            self.cached_tokens[model] += cached_tokens

    @property
    def cost_usd(self) -> float | None:
        """US dollars so far, ``None`` where a model's price is unknown or nothing was sent."""
        costs = [
            self.prices.cost_usd(
                model,
                input_tokens=tokens[0],
                output_tokens=tokens[1],
                cached_tokens=self.cached_tokens[model],
                mode=self.mode,
            )
            for model, tokens in self.tokens.items()
        ]
        priced = [cost for cost in costs if cost is not None]
        return sum(priced) if priced and len(priced) == len(costs) else None
