"""What one or more processes asked of a judge: calls, replies that were there, tokens, dollars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from lmms_eval_captions.judges.endpoint.prices import PRICES_VARIABLE

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.progress.meter import Meter

V = TypeVar("V")

EARLIER_VERSION: Final = "an earlier version"
"""Stands for the endpoint of stored replies of versions that did not write it down."""
_MOST_NAMED: Final = 2
"""Endpoints that a warning names."""
_MOST_URL: Final = 36
"""Characters of an endpoint in a warning."""


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
    """Addresses of the configured endpoint, several for replicas; none where it was not needed."""
    calls: int = 0
    """Requests that the endpoint answered."""
    from_store: Mapping[str, int] = field(default_factory=dict)
    """Endpoint to how many of its replies the store had; :data:`EARLIER_VERSION` is one of them."""
    shared: int = 0
    """Requests answered by the reply to an identical request that was under way."""
    retried: Mapping[str, int] = field(default_factory=dict)
    """Kind of failure (``HTTP 429``, ``time-out`` ...) to how many attempts ended so."""
    tokens: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Model to its input and output tokens of the calls."""
    cached_tokens: Mapping[str, int] = field(default_factory=dict)
    """Model to those of its input tokens that the endpoint had in its cache of prefixes, by the
    endpoint's own count; models of which it says nothing are left out."""
    usd_by_model: Mapping[str, float | None] = field(default_factory=dict)
    """Model to US dollars of its calls, ``None`` where its price is not known."""
    prices_date: str | None = None
    """Date of the prices; ``None`` where nothing was priced."""
    seconds: float = 0.0
    """While at least one question was under way."""

    def __add__(self, other: Totals) -> Totals:
        """Of processes that judged at the same time: the seconds are those of the longest."""
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
        """Of this and of what came before it in the same process; the endpoint is the latest."""
        return replace(
            earlier + self,
            endpoints=self.endpoints or earlier.endpoints,
            seconds=earlier.seconds + self.seconds,
        )

    def since(self, earlier: Totals) -> Totals:
        """What was added since these totals were ``earlier``."""
        tokens = _each(self.tokens, earlier.tokens, lambda a, b: (a[0] - b[0], a[1] - b[1]))
        tokens = {model: pair for model, pair in tokens.items() if any(pair)}
        costs = _each(self.usd_by_model, earlier.usd_by_model, _difference)
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
        was_needed = since != Totals()
        return replace(
            since,
            endpoints=self.endpoints if was_needed else (),
            seconds=self.seconds - earlier.seconds,
        )

    @property
    def usd(self) -> float | None:
        """US dollars of all calls, ``None`` where a model's price is not known."""
        costs = [usd for usd in self.usd_by_model.values() if usd is not None]
        return sum(costs, 0.0) if len(costs) == len(self.usd_by_model) else None

    @property
    def n_from_store(self) -> int:
        """Replies that the store had."""
        return sum(self.from_store.values())

    def warnings(self) -> list[str]:
        """What a reader of the scores must know about where the replies came from.

        Nothing is said where all were stored by an earlier version: nobody knows whose they are.

        Returns:
            Sentences of at most 300 characters.
        """
        sources = Counter(self.from_store)
        own = {*self.endpoints, EARLIER_VERSION}
        if self.calls or sources.keys() & set(self.endpoints) or not sources.keys() - own:
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
        """The counts as an object of JSON."""
        return {
            **asdict(self),
            "usd": self.usd,
            "endpoints": list(self.endpoints),
            "tokens": {model: list(pair) for model, pair in self.tokens.items()},
            "seconds": round(self.seconds, 3),
        }


def cost_words(usd_by_model: Mapping[str, float | None], prices_date: str | None) -> str:
    """What some calls cost, and of which models that is not known.

    Args:
        usd_by_model: As :class:`Totals` has it.
        prices_date: The same.

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


def totals_of(meter: Meter, endpoints: tuple[str, ...]) -> Totals:
    """What a meter has counted so far; from any thread.

    Args:
        meter: An engine's.
        endpoints: Names of the configured endpoint's addresses.
    """
    # Copied in one step each: the engine's thread goes on counting. A part before its whole.
    cached = dict(meter.cached_tokens)
    tokens = {model: (n[0], n[1]) for model, n in list(meter.tokens.items())}
    usd = {
        model: meter.prices.cost_usd(
            model,
            input_tokens=n[0],
            output_tokens=n[1],
            cached_tokens=cached.get(model, 0),
            mode=meter.mode,
        )
        for model, n in tokens.items()
    }
    is_needed = meter.n_calls or meter.from_store or meter.retried
    return Totals(
        endpoints=endpoints if is_needed else (),
        calls=meter.n_calls,
        from_store={name or EARLIER_VERSION: n for name, n in list(meter.from_store.items())},
        shared=meter.n_shared,
        retried=dict(meter.retried),
        tokens=tokens,
        cached_tokens=cached,
        usd_by_model=usd,
        prices_date=meter.prices.as_of if _is_priced(usd) else None,
        seconds=meter.seconds,
    )


def _each(one: Mapping[str, V], two: Mapping[str, V], act: Callable[[V, V], V]) -> dict[str, V]:
    """Two tables as one: where both have a model, what is made of the two."""
    return {
        model: act(one[model], two[model])
        if model in one and model in two
        else (one if model in one else two)[model]
        for model in dict.fromkeys((*one, *two))
    }


def _sum(one: float | None, two: float | None) -> float | None:
    return None if one is None or two is None else one + two


def _difference(one: float | None, two: float | None) -> float | None:
    return None if one is None or two is None else one - two


def _is_priced(usd_by_model: Mapping[str, float | None]) -> bool:
    return any(usd is not None for usd in usd_by_model.values())


def _short(name: str) -> str:
    return name if len(name) <= _MOST_URL else f"{name[: _MOST_URL - 3]}..."
