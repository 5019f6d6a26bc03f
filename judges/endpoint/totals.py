"""Counts of judging: calls, stored replies, tokens, dollars."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.cost import (
    PRICES_VARIABLE,
    JudgeMode,
    Prices,
    load_prices,
)
from lmms_eval_captions.judges.endpoint.request import Reply

_MOST_NAMED: Final = 2
_MOST_URL: Final = 36
_COUNTED: Final = ("calls", "from_store", "shared", "retried", "tokens", "cached_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts of judging. Every reply that was read is in ``calls``, ``from_store`` or ``shared``.

    >>> one = Totals(calls=3, from_store={"http://a/v1": 2}, tokens={"m": (30, 6)}, seconds=2.0)
    >>> two = Totals(calls=1, from_store={"http://a/v1": 5}, tokens={"m": (10, 2)}, seconds=3.0)
    >>> both = one + two
    >>> both.calls, both.from_store, both.tokens, both.seconds
    (4, {'http://a/v1': 7}, {'m': (40, 8)}, 3.0)
    """

    endpoints: tuple[str, ...] = ()
    """Addresses of the endpoint; empty if it was not needed."""
    calls: int = 0
    """Requests that the endpoint answered."""
    from_store: Mapping[str, int] = field(default_factory=dict)
    """Endpoint to the number of its replies that the store had."""
    shared: int = 0
    """Requests answered by the reply to an identical request in flight."""
    retried: Mapping[str, int] = field(default_factory=dict)
    """Kind of failure (``HTTP 429``, ``time-out`` ...) to the number of attempts."""
    tokens: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Model to input and output tokens of the calls."""
    cached_tokens: Mapping[str, int] = field(default_factory=dict)
    """Model to input tokens that the endpoint had in its prefix cache, by its own count."""
    usd_by_model: Mapping[str, float | None] = field(default_factory=dict)
    """Model to US dollars of its calls, ``None`` if its price is not known."""
    prices_date: str | None = None
    """Date or version of the prices; ``None`` if nothing was priced."""
    seconds: float = 0.0
    """Time with at least one question under way."""

    def __add__(self, other: Totals) -> Totals:
        """Add processes that judged at the same time: the seconds are those of the longest."""
        return Totals(
            **{name: _plus(getattr(self, name), getattr(other, name)) for name in _COUNTED},
            usd_by_model=_plus(self.usd_by_model, other.usd_by_model),
            endpoints=tuple(dict.fromkeys((*self.endpoints, *other.endpoints))),
            prices_date=self.prices_date or other.prices_date,
            seconds=max(self.seconds, other.seconds),
        )

    def after(self, earlier: Totals) -> Totals:
        """Add what came before in the same process; the endpoint is the latest."""
        return replace(
            earlier + self,
            endpoints=self.endpoints or earlier.endpoints,
            seconds=earlier.seconds + self.seconds,
        )

    def since(self, earlier: Totals) -> Totals:
        """Return what was added to ``earlier``."""
        counts = {n: _plus(getattr(self, n), getattr(earlier, n), -1) for n in _COUNTED}
        if not any(counts.values()):
            return Totals(seconds=self.seconds - earlier.seconds)
        spent = _plus(self.usd_by_model, earlier.usd_by_model, -1)
        usd = {model: spent.get(model, 0.0) for model in counts["tokens"]}
        return Totals(
            **counts,
            usd_by_model=usd,
            endpoints=self.endpoints,
            prices_date=self.prices_date if _is_priced(usd) else None,
            seconds=self.seconds - earlier.seconds,
        )

    @property
    def usd(self) -> float | None:
        """US dollars of all calls, ``None`` if a model's price is not known."""
        costs = [usd for usd in self.usd_by_model.values() if usd is not None]
        return sum(costs, 0.0) if len(costs) == len(self.usd_by_model) else None

    @property
    def n_from_store(self) -> int:
        """Replies that the store had."""
        return sum(self.from_store.values())

    def warnings(self) -> list[str]:
        """Return what a reader of the scores must know about the origin of the replies."""
        sources = Counter(self.from_store)
        if self.calls or sources.keys() & set(self.endpoints) or not sources:
            return []
        named = [f"{n:,} of {_short(name)}" for name, n in sources.most_common(_MOST_NAMED)]
        if len(sources) > _MOST_NAMED:
            named.append(f"{len(sources) - _MOST_NAMED} more endpoints")
        configured = ", ".join(map(_short, self.endpoints[:1]))
        return [
            f"no reply came from the configured endpoint, {configured}: all {self.n_from_store:,} "
            f"were in the store ({'; '.join(named)}). LMMS_CAPTIONS_STORE_BY=endpoint asks it anew"
        ]

    def to_json(self) -> dict[str, object]:
        """Return the counts as an object of JSON."""
        return {
            **asdict(self),
            "usd": self.usd,
            "endpoints": list(self.endpoints),
            "tokens": {model: list(pair) for model, pair in self.tokens.items()},
            "seconds": round(self.seconds, 3),
        }


def cost_words(usd_by_model: Mapping[str, float | None], prices_date: str | None) -> str:
    """Return a text of the cost, with the models of unknown price.

    >>> cost_words({"a": 1.5, "b": None}, "2025-06-30")
    '$1.50 by the prices of 2025-06-30, without b, whose price is unknown (LMMS_CAPTIONS_PRICES)'
    >>> cost_words({"b": None}, None)
    'price unknown (LMMS_CAPTIONS_PRICES)'
    """
    unknown = [model for model, usd in usd_by_model.items() if usd is None]
    if len(unknown) == len(usd_by_model):
        return f"price unknown ({PRICES_VARIABLE})"
    usd = sum(usd for usd in usd_by_model.values() if usd is not None)
    rest = f", without {', '.join(unknown)}, whose price is unknown ({PRICES_VARIABLE})"
    return f"${usd:,.2f} by the prices of {prices_date}{rest if unknown else ''}"


@dataclass(slots=True)
class Meter:
    """Counts of one engine; written by its thread alone."""

    prices: Prices = field(default_factory=load_prices)
    mode: JudgeMode = "now"
    n_submitted: int = 0
    """Questions (chains of requests)."""
    n_done: int = 0
    n_asking: int = 0
    """Requests in flight or waiting to be sent (again)."""
    n_unscored: int = 0
    n_calls: int = 0
    n_shared: int = 0
    from_store: Counter[str] = field(default_factory=Counter)
    retried: Counter[str] = field(default_factory=Counter)
    tokens: dict[str, list[int]] = field(default_factory=dict)
    cached_tokens: Counter[str] = field(default_factory=Counter)
    _busy_s: float = 0.0
    _busy_since_s: float | None = None

    def count_submitted(self, n_questions: int) -> None:
        """Count questions that are under way from now on."""
        self.n_submitted += n_questions
        if self._busy_since_s is None:
            self._busy_since_s = time.monotonic()

    def count_done(self) -> None:
        """Count a question that is no longer under way."""
        self.n_done += 1
        if self.n_done >= self.n_submitted:
            self.rest()

    def rest(self) -> None:
        """Stop the clock until questions are submitted again."""
        self._busy_s, self._busy_since_s = self.seconds, None

    @property
    def seconds(self) -> float:
        """Time with at least one question under way."""
        since_s = self._busy_since_s
        return self._busy_s + (0.0 if since_s is None else time.monotonic() - since_s)

    @property
    def n_cached(self) -> int:
        """Requests answered by the store, or by an identical request in flight."""
        return self.from_store.total() + self.n_shared

    def count_call(self, model: str, reply: Reply) -> None:
        """Count an answered request."""
        self.n_calls += 1
        total = self.tokens.setdefault(model, [0, 0])
        total[0] += reply.input_tokens
        total[1] += reply.output_tokens
        if reply.cached_tokens:
            self.cached_tokens[model] += reply.cached_tokens

    def usd_by_model(self) -> dict[str, float | None]:
        """Return US dollars of each model so far."""
        cached = dict(self.cached_tokens)
        return {
            model: self.prices.cost_usd(
                model,
                input_tokens=n[0],
                output_tokens=n[1],
                cached_tokens=cached.get(model, 0),
                mode=self.mode,
            )
            for model, n in list(self.tokens.items())
        }

    def totals(self, endpoints: tuple[str, ...]) -> Totals:
        """Return the counts so far; from any thread."""
        # Copied in one step each: the engine's thread counts on. A part before its whole.
        cached = dict(self.cached_tokens)
        usd = self.usd_by_model()
        is_needed = self.n_calls or self.from_store or self.retried
        return Totals(
            endpoints=endpoints if is_needed else (),
            calls=self.n_calls,
            from_store=dict(self.from_store),
            shared=self.n_shared,
            retried=dict(self.retried),
            tokens={model: (n[0], n[1]) for model, n in list(self.tokens.items())},
            cached_tokens=cached,
            usd_by_model=usd,
            prices_date=self.prices.as_of if _is_priced(usd) else None,
            seconds=self.seconds,
        )


def _plus(one: Any, two: Any, sign: int = 1) -> Any:  # noqa: ANN401 - of the same type
    """Add numbers, tuples of them, or tables; of a difference of tables without the zeros."""
    if isinstance(one, Mapping):
        both = {k: _plus(one[k], two[k], sign) for k in one.keys() & two.keys()}
        both = {k: both.get(k, {**two, **one}[k]) for k in {**one, **two}}
        return {k: v for k, v in both.items() if sign > 0 or v not in (0, (0, 0))}
    if isinstance(one, tuple):
        return tuple(_plus(*pair, sign) for pair in zip(one, two, strict=True))
    return None if one is None or two is None else one + sign * two


def _is_priced(usd_by_model: Mapping[str, float | None]) -> bool:
    return any(usd is not None for usd in usd_by_model.values())


def _short(name: str) -> str:
    return name if len(name) <= _MOST_URL else f"{name[: _MOST_URL - 3]}..."
