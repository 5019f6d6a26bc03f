"""Progress of judging: a bar on a terminal, a line a minute elsewhere, and endpoint trouble."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final, TextIO

from loguru import logger
from tqdm import tqdm

from lmms_eval_captions.judges.endpoint.urls import scrub

if TYPE_CHECKING:
    from loguru import Record

    from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
    from lmms_eval_captions.judges.endpoint.totals import Meter
    from lmms_eval_captions.judges.errors import JudgeStoppedError, JudgeUnavailableError

_LIVELY_S: Final = 0.5
_LINE_S: Final = 50.0
_TROUBLE_S: Final = 60.0
_RATE_S: Final = 120.0
_LOGGING_S: Final = 0.2
_SILENCE_S: Final = 5.0
"""Silence that the bar shows."""
_MOST_FIRSTS: Final = 8
_LEAST_USD: Final = 0.005


class Progress:
    """Shows how far one engine is, and what fails; for its event loop alone."""

    def __init__(self, config: EngineConfig, meter: Meter, n_in_flight: Callable[[], int]) -> None:
        self._config = config
        self._meter = meter
        self._n_in_flight = n_in_flight
        self._bar: _Bar | None = None
        self._firsts: set[str] = set()
        """Kinds of failure of which the first was logged."""
        self._stops: set[str] = set()
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
        if error.kind not in self._firsts and len(self._firsts) < _MOST_FIRSTS:
            self._firsts.add(error.kind)
            self._logged_s = time.monotonic()
            logger.warning(
                "endpoint trouble, first {}: {}. Failed requests are sent again; what cannot be "
                "answered is unscored, and asked again by the next run",
                error.kind,
                self._latest,
            )

    def stopped(self, model: str, error: JudgeStoppedError) -> None:
        """Log, once, that nothing more is asked of a model."""
        words = self._scrubbed(error)
        name = re.sub(r"\d+", "", f"{model} {words}")
        if name not in self._stops:
            self._stops.add(name)
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
        self._draw(silence)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            is_done = self._meter.n_done >= self._meter.n_submitted
            self._bar.end("" if is_done else "stopped")
            self._bar = None

    def _log_trouble(self, silence: str) -> None:
        counts = ", ".join(f"{n:,} x {kind}" for kind, n in self._failures.most_common())
        n_in_flight = self._n_in_flight()
        waiting = self._meter.n_asking - n_in_flight
        parts = [
            counts or "no failure",
            silence,
            f"{n_in_flight:,} in flight",
            f"{waiting:,} waiting",
        ]
        latest = f". Latest: {self._latest}" if self._failures else ""
        logger.warning("endpoint trouble: {}{}", ", ".join(filter(None, parts)), latest)
        self._failures.clear()

    def _draw(self, silence: str) -> None:
        meter = self._meter
        is_done = meter.n_done >= meter.n_submitted
        # Without a standard error, as in some services, tqdm would keep its lock.
        if not self._config.progress or sys.stderr is None or (self._bar is None and is_done):
            return
        if self._bar is None:
            self._bar = (_Terminal if _is_terminal(sys.stderr) else _Bar)(sys.stderr, meter)
        if is_done:
            self._bar.end("")
            self._bar = None
        else:
            self._bar.draw(silence)

    def _scrubbed(self, error: Exception) -> str:
        return scrub(str(error), self._config.api_key, *self._config.urls)


def parts_of(meter: Meter, timing: Sequence[str], note: str = "") -> list[str]:
    """Return the parts of a progress line, the most important first, without zeros."""
    share = meter.n_done / max(1, meter.n_submitted)
    costs = [usd for usd in meter.usd_by_model().values() if usd is not None]
    usd, n_429 = sum(costs), meter.retried["HTTP 429"]
    n_in, n_out = (sum(total[i] for total in meter.tokens.values()) for i in (0, 1))
    n_retried, n_cached = meter.retried.total(), sum(meter.cached_tokens.values())
    limited = f" ({n_429:,} x 429)" if n_429 else ""
    return [
        # Not rounded: 100% is all of it.
        f"Judging{f' {note}' if note == 'stopped' else ''}: {int(100 * share):3d}%",
        *([f"${usd:,.2f}"] if usd >= _LEAST_USD else []),
        f"{meter.n_done:,}/{meter.n_submitted:,}",
        *([note] if note and note != "stopped" else []),
        *([f"{meter.n_unscored:,} unscored"] if meter.n_unscored else []),
        *timing,
        *([f"{meter.n_calls:,} calls"] if meter.n_calls else []),
        *([f"{meter.n_cached:,} from the store"] if meter.n_cached else []),
        *([f"{n_retried:,} retried{limited}"] if n_retried else []),
        *([f"tokens {n_in:,}+{n_out:,}"] if n_in or n_out else []),
        *([f"{n_cached / n_in:.0%} of the prompts cached"] if n_cached and n_in else []),
    ]


def fit(parts: Sequence[str], width: int | None) -> str:
    """Return as many of the first parts as fit into a line.

    >>> fit(["Judging:  25%", "$1.20", "1/4"], 20)
    'Judging:  25%, $1.20'
    """
    if width is None:
        return ", ".join(parts)
    n = next((n for n in range(len(parts), 0, -1) if len(", ".join(parts[:n])) <= width), 1)
    return ", ".join(parts[:n])[:width]


def end_other_bars() -> None:
    """Close the bars of others, when a run ends before they are full."""
    for bar in list(getattr(tqdm, "_instances", ())):
        if not isinstance(bar, _Line):
            bar.close()


class _Bar:
    """Progress as a line every 50 s, in a log."""

    def __init__(self, stream: TextIO, meter: Meter) -> None:
        self._stream = stream
        self._meter = meter
        self._began_s = self._drawn_s = time.monotonic()
        self._moments = deque([(self._began_s, meter.n_done)])
        self._is_begun = False

    def draw(self, note: str) -> None:
        """Write a line if one is due."""
        if time.monotonic() - self._drawn_s >= _LINE_S:
            self._drawn_s, self._is_begun = time.monotonic(), True
            self._write(note)

    def end(self, note: str) -> None:
        """Write the last line."""
        if self._is_begun or note:
            self._write(note)

    def parts(self, note: str) -> list[str]:
        """Return the parts of the line."""
        return parts_of(self._meter, self._timing(), note)

    def _timing(self) -> list[str]:
        """Return time passed, time left and rate."""
        now_s, meter = time.monotonic(), self._meter
        self._moments.append((now_s, meter.n_done))
        while now_s - self._moments[1][0] > _RATE_S:
            self._moments.popleft()
        since_s, n_before = self._moments[0]
        passed = tqdm.format_interval(now_s - self._began_s)
        n_new = meter.n_done - n_before
        if n_new <= 0 or now_s <= since_s:
            return [passed]
        rate = n_new / (now_s - since_s)
        left = tqdm.format_interval((meter.n_submitted - meter.n_done) / rate)
        speed = f"{rate:.3g} questions/s" if rate >= 1.0 else f"{1 / rate:.3g} s/question"
        return [f"{passed}<{left}", speed]

    def _write(self, note: str) -> None:
        # The stream may be closed, or a file on a full disk.
        with suppress(OSError, ValueError):
            self._stream.write(f"{', '.join(self.parts(note))}\n")
            self._stream.flush()


class _Terminal(_Bar):
    """Progress as a line that is drawn over itself; log lines begin on a line of their own."""

    def __init__(self, stream: TextIO, meter: Meter) -> None:
        super().__init__(stream, meter)
        _Line.parts = self.parts("")
        self._line = _Line(total=meter.n_submitted, file=stream, dynamic_ncols=True, miniters=0)
        self._free_s = -inf
        _stand(self)

    def draw(self, note: str) -> None:
        """Draw the line if it is due."""
        now_s = time.monotonic()
        if now_s >= max(self._drawn_s + _LIVELY_S, self._free_s):
            self._drawn_s = now_s
            self._line.parts = self.parts(note)
            with suppress(OSError, ValueError):
                self._line.refresh()

    def end(self, note: str) -> None:
        """Leave the line as it is."""
        _stand(None)
        self._line.parts = self.parts(note)
        with suppress(OSError, ValueError):
            self._line.close()

    def make_room(self) -> None:
        """Remove the line for a moment, as something else is written."""
        with tqdm.get_lock():  # type: ignore[no-untyped-call] # its stubs
            for line in list(getattr(tqdm, "_instances", ())):
                with suppress(OSError, ValueError):
                    line.clear(nolock=True)
        self._drawn_s, self._free_s = -inf, time.monotonic() + _LOGGING_S


class _Line(tqdm):  # type: ignore[type-arg] # generic in its stubs alone
    """A line of tqdm's, which keeps several bars apart, with our text."""

    parts: Sequence[str] = ()

    def __str__(self) -> str:
        columns = self.format_dict["ncols"]
        # In the last column some terminals begin the next line.
        return fit(self.parts, columns - 1 if columns and columns > 1 else None)


_standing: tuple[int, _Terminal] | None = None
"""The process that draws the line, and the line."""


def _stand(line: _Terminal | None) -> None:
    """Have log lines begin on a line of their own while this one is drawn."""
    global _standing  # noqa: PLW0603 - loguru has one patcher for the process, too
    _standing = None if line is None else (os.getpid(), line)
    core = getattr(logger, "_core", None)
    if line is not None and getattr(core, "patcher", None) is None:
        logger.configure(patcher=_make_room)


def _make_room(_: Record) -> None:
    # A forked child would wait for a lock that its parent held.
    if _standing is not None and _standing[0] == os.getpid():
        _standing[1].make_room()


def _is_terminal(stream: TextIO) -> bool:
    with suppress(OSError, ValueError):
        return stream.isatty()
    return False
