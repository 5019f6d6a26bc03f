"""Counts of one run of judging, and the bar that shows them."""

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NoReturn, TextIO

from tqdm import tqdm

from lmms_eval_captions.judges.endpoint.prices import JudgeMode, Prices, load_prices

_LIVELY_S: Final = 0.5
"""Seconds between two drawings at least."""


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

    def text(self) -> str:
        """One line of counts.

        >>> Meter(n_calls=3, n_cached=1).text()
        'calls 3, cached 1, retried 0, unscored 0, tokens 0+0'
        """
        n_in, n_out = (sum(total[i] for total in self.tokens.values()) for i in (0, 1))
        parts = [
            f"calls {self.n_calls:,}",
            f"cached {self.n_cached:,}",
            f"retried {self.n_retried:,}",
            f"unscored {self.n_unscored:,}",
            f"tokens {n_in:,}+{n_out:,}",
        ]
        if self.n_rate_limited:
            parts.append(f"429s {self.n_rate_limited:,}")
        cost = self.cost_usd
        if cost is not None:
            parts.append(f"${cost:,.2f}")
        return ", ".join(parts)


class _Lenient:
    """A stream whose failing writes are dropped: standard error may be a file on a full disk.

    tqdm keeps its lock where a write raises, and then every other bar of the process hangs.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


class Bar:
    """One progress bar for all questions of a process, on a clock: it moves without progress, too.

    Args:
        visible: Whether to draw anything (rank 0 alone does).
        idle_s: Seconds after which it is drawn again where nothing was done.
    """

    def __init__(self, *, visible: bool, idle_s: float = 1.0) -> None:
        self._visible = visible
        self._idle_s = idle_s
        self._drawn_s = 0.0
        self._bar: tqdm[NoReturn] | None = None

    def refresh(self, meter: Meter) -> None:
        """Draw the meter's state where that is due; closes the bar when nothing is left."""
        if not self._visible:
            return
        bar = self._bar
        if bar is None:
            # Without a standard error, as in some services, tqdm would keep its lock.
            if meter.n_done >= meter.n_submitted or sys.stderr is None:
                return
            bar = self._bar = tqdm(
                desc="Judging",
                total=meter.n_submitted,
                unit="question",
                initial=meter.n_done,
                mininterval=_LIVELY_S,
                miniters=0,
                file=_Lenient(sys.stderr),
            )
        now_s = time.monotonic()
        self._take_in(bar, meter)
        n_new = meter.n_done - bar.n
        # Not ``update`` where nothing was done: it would measure the speed from now on alone.
        is_drawn = bool(bar.update(n_new)) if n_new else False
        if not is_drawn and now_s - self._drawn_s >= self._idle_s:
            bar.refresh()
            is_drawn = True
        if is_drawn:
            self._drawn_s = now_s
        if meter.n_done >= meter.n_submitted:
            self._end(bar)

    def close(self, meter: Meter) -> None:
        """Leave the bar as it stands: what was not done by now is not done."""
        bar = self._bar
        if bar is not None:
            self._take_in(bar, meter)
            if meter.n_done < meter.n_submitted:
                bar.set_description_str("Judging stopped", refresh=False)
            bar.update(meter.n_done - bar.n)
            self._end(bar)

    def _take_in(self, bar: tqdm[NoReturn], meter: Meter) -> None:
        bar.total = meter.n_submitted
        counts = meter.text()
        bar.set_postfix_str(
            f"{meter.silence}, {counts}" if meter.silence else counts, refresh=False
        )

    def _end(self, bar: tqdm[NoReturn]) -> None:
        bar.close()
        self._bar = None
