"""Counts of judging, and its progress: a bar on a terminal, a line a minute elsewhere, trouble."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final

from loguru import logger
from tqdm import tqdm

from lmms_eval_captions.judges.endpoint.cost import PRICES_VARIABLE, JudgeMode, Prices, load_prices
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.endpoint.urls import scrub

if TYPE_CHECKING:
    from loguru import Record

    from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
    from lmms_eval_captions.judges.errors import JudgeStoppedError, JudgeUnavailableError

_MOST_NAMED: Final = 2
_COUNTED: Final = ("calls", "from_store", "shared", "retried", "tokens", "cached_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts of judging. Every reply that is read is in ``calls``, ``from_store`` or ``shared``."""

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
        """Return the number of replies that the store had."""
        return sum(self.from_store.values())

    def warnings(self) -> list[str]:
        """Return what a reader of the scores must know about the origin of the replies."""
        sources = Counter(self.from_store)
        if self.calls or sources.keys() & set(self.endpoints) or not sources:
            return []
        named = [f"{n:,} of {_short(name)}" for name, n in sources.most_common(_MOST_NAMED)]
        if len(sources) > _MOST_NAMED:
            named.append(f"{len(sources) - _MOST_NAMED} more endpoints")
        own = ", ".join(map(_short, self.endpoints[:1]))
        return [
            f"no reply came from the configured endpoint, {own}: all {self.n_from_store:,} "
            f"were in the store ({'; '.join(named)}). LMMS_CAPTIONS_STORE_BY=endpoint asks it again"
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
        return {
            model: self.prices.cost_usd(model, n[0], n[1], self.cached_tokens[model], self.mode)
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
    return name if len(name) <= 36 else f"{name[:33]}..."


_TROUBLE_S: Final = 60.0
_SILENCE_S: Final = 5.0
"""Silence that the bar shows."""
_FORMAT: Final = "{desc}"
"""Format of our lines on a terminal; tqdm keeps several of them apart."""


class Progress:
    """Shows how far one engine is, and what fails; for its event loop alone."""

    def __init__(self, config: EngineConfig, meter: Meter, n_in_flight: Callable[[], int]) -> None:
        self._config = config
        self._meter = meter
        self._n_in_flight = n_in_flight
        self._bar: _Bar | None = None
        self._logged: set[str] = set()
        """Kinds of failure, and reasons to stop, that were logged."""
        self._failures: Counter[str] = Counter()
        """Failures since the latest line about them."""
        self._latest = ""
        self._logged_s = -inf
        self._n_calls = 0
        self._replied_s = time.monotonic()
        self._is_silence_logged = False

    def failed(self, error: JudgeUnavailableError) -> None:
        """Note a failed attempt; the first of its kind is logged."""
        self._failures[error.kind] += 1
        self._latest = self._scrubbed(error)
        if error.kind not in self._logged:
            self._logged.add(error.kind)
            self._logged_s = time.monotonic()
            logger.warning(
                f"endpoint trouble, first {error.kind}: {self._latest}. Failed requests are sent "
                "again; what cannot be answered is unscored, and asked again by the next run"
            )

    def stopped(self, model: str, error: JudgeStoppedError) -> None:
        """Log, once, that nothing more is asked of a model."""
        words = self._scrubbed(error)
        name = re.sub(r"\d+", "", f"{model} {words}")
        if name not in self._logged:
            self._logged.add(name)
            more = "" if "kept" in words else "; what was answered is kept"
            logger.warning("nothing more is asked of {}: {}{}", model, words, more)
            self._failures.clear()

    def tick(self) -> None:
        """Draw and log what is due; to be called a few times a second."""
        now_s, meter = time.monotonic(), self._meter
        if meter.n_calls != self._n_calls or not meter.n_asking or self._config.mode == "batch":
            if self._is_silence_logged:
                logger.info("replies again after {:.0f} s without one", now_s - self._replied_s)
            self._is_silence_logged = False
            self._n_calls, self._replied_s = meter.n_calls, now_s
        silent_s = now_s - self._replied_s
        silence = f"no reply for {silent_s:.0f} s" if silent_s >= _SILENCE_S else ""
        is_due = now_s - self._logged_s >= _TROUBLE_S and meter.n_asking > 0
        if is_due and (self._failures or silent_s >= _TROUBLE_S):
            self._log_trouble(silence)
            self._logged_s, self._is_silence_logged = now_s, bool(silence)
        is_done = meter.n_done >= meter.n_submitted
        # Without a standard error, as in some services, tqdm would keep its lock.
        if self._config.progress and sys.stderr is not None and not is_done:
            self._bar = self._bar or _Bar(meter)
            self._bar.draw(silence)
        elif is_done:
            self.close()

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            is_done = self._meter.n_done >= self._meter.n_submitted
            self._bar.draw("" if is_done else "stopped", is_last=True)
            self._bar = None

    def _log_trouble(self, silence: str) -> None:
        counts = ", ".join(f"{n:,} x {kind}" for kind, n in self._failures.most_common())
        n_in_flight = self._n_in_flight()
        waiting = f"{n_in_flight:,} in flight, {self._meter.n_asking - n_in_flight:,} waiting"
        parts = filter(None, (counts or "no failure", silence, waiting))
        latest = f". Latest: {self._latest}" if self._failures else ""
        logger.warning("endpoint trouble: {}{}", ", ".join(parts), latest)
        self._failures.clear()

    def _scrubbed(self, error: Exception) -> str:
        return scrub(str(error), self._config.api_key, *self._config.urls)


def parts_of(meter: Meter, timing: Sequence[str], note: str = "") -> list[str]:
    """Return the parts of a progress line, the most important first, without zeros."""
    share = meter.n_done / max(1, meter.n_submitted)
    usd = sum(usd for usd in meter.usd_by_model().values() if usd is not None)
    n_429, n_retried = meter.retried["HTTP 429"], meter.retried.total()
    n_in, n_out = (sum(total[i] for total in meter.tokens.values()) for i in (0, 1))
    n_cached = sum(meter.cached_tokens.values())
    n_stored = meter.from_store.total() + meter.n_shared
    limited = f" ({n_429:,} x 429)" if n_429 else ""
    is_stopped = note == "stopped"
    parts = {
        # Not rounded: 100% is all of it.
        f"Judging{' stopped' if is_stopped else ''}: {int(100 * share):3d}%": True,
        f"${usd:,.2f}": usd >= 0.005,
        f"{meter.n_done:,}/{meter.n_submitted:,}": True,
        note: bool(note) and not is_stopped,
        f"{meter.n_unscored:,} unscored": meter.n_unscored,
        **dict.fromkeys(timing, True),
        f"{meter.n_calls:,} calls": meter.n_calls,
        f"{n_stored:,} from the store": n_stored,
        f"{n_retried:,} retried{limited}": n_retried,
        f"tokens {n_in:,}+{n_out:,}": n_in or n_out,
        f"{n_cached / max(1, n_in):.0%} of the prompts cached": n_cached and n_in,
    }
    return [part for part, is_shown in parts.items() if is_shown]


def end_other_bars() -> None:
    """Close the bars of others, when a run ends before they are full."""
    for bar in _bars():
        if bar.bar_format != _FORMAT:
            bar.close()


class _Bar:
    """Progress as one line: drawn over itself on a terminal, written every 50 s to a log."""

    pid: ClassVar = 0
    """Process that draws."""
    patcher: ClassVar[Any] = None
    """loguru's patcher before ours."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._began_s = self._drawn_s = time.monotonic()
        self._moments = deque([(self._began_s, meter.n_done)])
        self._stream, self._is_begun = sys.stderr, False
        self._line: tqdm[Any] | None = None
        """Line of a terminal."""
        # The stream may be closed, or a file on a full disk; here and below.
        with suppress(OSError, ValueError):
            if self._stream.isatty():
                self._line = tqdm(file=self._stream, dynamic_ncols=True, bar_format=_FORMAT)
                self._drawn_s = -inf
                _leave_lines_to_logs()

    def draw(self, note: str, *, is_last: bool = False) -> None:
        """Draw or write the line if it is due."""
        now_s = time.monotonic()
        is_due = now_s - self._drawn_s >= (50.0 if self._line is None else 0.5)
        is_end = is_last and (self._line is not None or self._is_begun or bool(note))
        if not is_due and not is_end:
            return
        self._drawn_s, self._is_begun = now_s, True
        parts = parts_of(self._meter, self._timing(), note)
        with suppress(OSError, ValueError):
            if self._line is None:
                self._stream.write(f"{', '.join(parts)}\n")
                self._stream.flush()
                return
            # In the last column some terminals begin the next line.
            width = (self._line.format_dict["ncols"] or 1000) - 1
            while len(", ".join(parts)) > width and len(parts) > 1:
                parts.pop()
            self._line.set_description_str(", ".join(parts)[: max(1, width)])
        if is_last and self._line is not None:
            with suppress(OSError, ValueError):
                self._line.close()

    def _timing(self) -> list[str]:
        """Return the time passed and left, and the rate of the last two minutes."""
        now_s, meter = time.monotonic(), self._meter
        self._moments.append((now_s, meter.n_done))
        while now_s - self._moments[1][0] > 120.0:
            self._moments.popleft()
        since_s, n_before = self._moments[0]
        passed, n_new = tqdm.format_interval(now_s - self._began_s), meter.n_done - n_before
        if n_new <= 0 or now_s <= since_s:
            return [passed]
        rate = n_new / (now_s - since_s)
        left = tqdm.format_interval((meter.n_submitted - meter.n_done) / rate)
        speed = f"{rate:.3g} questions/s" if rate >= 1.0 else f"{1 / rate:.3g} s/question"
        return [f"{passed}<{left}", speed]


def _bars() -> list[Any]:
    return list(getattr(tqdm, "_instances", ()))


def _leave_lines_to_logs() -> None:
    """Have log lines begin on a line of their own while a bar of ours is drawn."""
    patcher = getattr(getattr(logger, "_core", None), "patcher", None)
    if patcher is not _make_room:
        _Bar.patcher = patcher
        logger.configure(patcher=_make_room)
    _Bar.pid = os.getpid()


def _make_room(record: Record) -> None:
    if _Bar.patcher is not None:
        _Bar.patcher(record)
    # A forked child would wait for a lock that its parent held.
    if os.getpid() == _Bar.pid and any(bar.bar_format == _FORMAT for bar in _bars()):
        for bar in _bars():
            with suppress(OSError, ValueError):
                bar.clear()
