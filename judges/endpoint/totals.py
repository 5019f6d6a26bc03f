"""Counts of judging: calls, stored replies, tokens, dollars."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final, TypeVar

from lmms_eval_captions.judges.endpoint.cost import (
    PRICES_VARIABLE,
    JudgeMode,
    Prices,
    load_prices,
)
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.errors import JudgeUnavailableError

V = TypeVar("V")

_MOST_NAMED: Final = 2
_MOST_URL: Final = 36


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
            endpoints=tuple(dict.fromkeys((*self.endpoints, *other.endpoints))),
            calls=self.calls + other.calls,
            from_store=dict(Counter(self.from_store) + Counter(other.from_store)),
            shared=self.shared + other.shared,
            retried=dict(Counter(self.retried) + Counter(other.retried)),
            tokens=_each(self.tokens, other.tokens, lambda a, b: (a[0] + b[0], a[1] + b[1])),
            cached_tokens=dict(Counter(self.cached_tokens) + Counter(other.cached_tokens)),
            usd_by_model=_each(self.usd_by_model, other.usd_by_model, _sum),
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
        tokens = _each(self.tokens, earlier.tokens, lambda a, b: (a[0] - b[0], a[1] - b[1]))
        tokens = {model: pair for model, pair in tokens.items() if any(pair)}
        costs = _each(self.usd_by_model, earlier.usd_by_model, lambda a, b: _sum(a, b, -1.0))
        usd_by_model = {model: costs[model] for model in tokens}
        since = Totals(
            calls=self.calls - earlier.calls,
            from_store=dict(Counter(self.from_store) - Counter(earlier.from_store)),
            shared=self.shared - earlier.shared,
            retried=dict(Counter(self.retried) - Counter(earlier.retried)),
            tokens=tokens,
            cached_tokens=dict(Counter(self.cached_tokens) - Counter(earlier.cached_tokens)),
            usd_by_model=usd_by_model,
            prices_date=self.prices_date if _is_priced(usd_by_model) else None,
        )
        return replace(
            since,
            endpoints=() if since == Totals() else self.endpoints,
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

    Args:
        usd_by_model: As in :class:`Totals`.
        prices_date: As in :class:`Totals`.

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

    def count_stored(self, endpoint: str | None) -> None:
        """Count a request that the store answered."""
        self.from_store[endpoint or "an unknown endpoint"] += 1

    def count_shared(self) -> None:
        """Count a request that an identical one in flight answered."""
        self.n_shared += 1

    def count_retry(self, error: JudgeUnavailableError) -> None:
        """Count a failed attempt."""
        self.retried[error.kind] += 1

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
        """Return the counts so far; from any thread.

        Args:
            endpoints: Names of the endpoint's addresses.
        """
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


def _each(one: Mapping[str, V], two: Mapping[str, V], act: Callable[[V, V], V]) -> dict[str, V]:
    """Merge two tables; ``act`` merges the values of keys that both have."""
    both = {key: act(one[key], two[key]) for key in one.keys() & two.keys()}
    return {key: both.get(key, {**two, **one}[key]) for key in dict.fromkeys((*one, *two))}


def _sum(one: float | None, two: float | None, sign: float = 1.0) -> float | None:
    return None if one is None or two is None else one + sign * two


def _is_priced(usd_by_model: Mapping[str, float | None]) -> bool:
    return any(usd is not None for usd in usd_by_model.values())


def _short(name: str) -> str:
    return name if len(name) <= _MOST_URL else f"{name[: _MOST_URL - 3]}..."
