"""Counts of one run of judging."""

from __future__ import annotations

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
    n_retried: int = 0
    n_rate_limited: int = 0
    tokens: dict[str, list[int]] = field(default_factory=dict)
    """Model to [input, output] tokens billed in this run."""

    def count_call(self, model: str, input_tokens: int, output_tokens: int) -> None:
        """Count one answered request."""
        self.n_calls += 1
        total = self.tokens.setdefault(model, [0, 0])
        total[0] += input_tokens
        total[1] += output_tokens

    @property
    def cost_usd(self) -> float | None:
        """US dollars so far, ``None`` where a model's price is unknown or nothing was sent."""
        costs = [
            self.prices.cost_usd(
                model, input_tokens=tokens[0], output_tokens=tokens[1], mode=self.mode
            )
            for model, tokens in self.tokens.items()
        ]
        priced = [cost for cost in costs if cost is not None]
        return sum(priced) if priced and len(priced) == len(costs) else None
