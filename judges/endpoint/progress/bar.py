"""The line that shows how far judging is: drawn on a terminal, written every 50 s elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final, TextIO

from loguru import logger
from tqdm import tqdm

from lmms_eval_captions.judges.endpoint.progress.meter import Meter

if TYPE_CHECKING:
    from loguru import Record

_LIVELY_S: Final = 0.5
"""Seconds between two drawings at least."""
_LINE_S: Final = 50.0
"""Seconds between two lines where there is no terminal: on a busy machine no minute is silent."""
_RATE_S: Final = 120.0
"""The rate is that of so many seconds."""
_LOGGING_S: Final = 0.2
"""Seconds that a log line has to be written in, before the bar stands again."""
_USUAL_COLUMNS: Final = 80
_SHOWN_USD: Final = 0.005
"""Less would be shown as nothing."""

_ERASE: Final = "\x1b[K"
"""Has a terminal erase the rest of the row."""


class Bar:
    """One line for all questions of a process, on a clock: it moves without progress, too.

    On a terminal it is drawn over itself and never wider than that, and log lines begin on a line
    of their own. Where standard error is none, a line is written every 50 s.

    Args:
        visible: Whether to show anything (rank 0 alone does).
        idle_s: Seconds after which it is drawn again where nothing was done.
    """

    def __init__(self, *, visible: bool, idle_s: float = 1.0) -> None:
        self._visible = visible
        self._idle_s = idle_s
        self._shown: _Terminal | _Lines | None = None

    def refresh(self, meter: Meter) -> None:
        """Show the meter's state where that is due; ends the line when nothing is left."""
        is_done = meter.n_done >= meter.n_submitted
        # Without a standard error, as in some services, tqdm would keep its lock.
        if not self._visible or sys.stderr is None or (self._shown is None and is_done):
            return
        if self._shown is None:
            stream, pace = sys.stderr, Pace(meter)
            self._shown = (
                _Terminal(stream, pace, meter, self._idle_s)
                if _is_terminal(stream)
                else _Lines(stream, pace)
            )
        if is_done:
            self._end(meter, "Judging")
        else:
            self._shown.refresh(meter)

    def close(self, meter: Meter) -> None:
        """Leave the line as it stands: what was not done by now is not done."""
        is_done = meter.n_done >= meter.n_submitted
        self._end(meter, "Judging" if is_done else "Judging stopped")

    def _end(self, meter: Meter, title: str) -> None:
        shown, self._shown = self._shown, None
        if shown is not None:
            shown.end(meter, title)


class Pace:
    """How long judging has taken, how fast it is, and what that means for the rest."""

    def __init__(self, meter: Meter) -> None:
        self._began_s = time.monotonic()
        self._moments = deque([(self._began_s, meter.n_done)])

    def parts(self, meter: Meter) -> list[str]:
        """Time passed, time left and rate, those that can be told."""
        now_s = time.monotonic()
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
        is_fast = rate >= 1.0
        return [
            f"{passed}<{left}",
            f"{rate:.3g} questions/s" if is_fast else f"{1 / rate:.3g} s/question",
        ]


def parts_of(meter: Meter, pace: Pace, title: str = "Judging") -> list[str]:
    """What there is to say, the most important first, without what is zero."""
    share = meter.n_done / max(1, meter.n_submitted)
    usd = meter.cost_usd or 0.0
    return [
        # Not rounded: 100% is all of it.
        f"{title}: {int(100 * share):3d}%",
        *([f"${usd:,.2f}"] if usd >= _SHOWN_USD else []),
        f"{meter.n_done:,}/{meter.n_submitted:,}",
        *([meter.silence] if meter.silence else []),
        *([f"{meter.n_unscored:,} unscored"] if meter.n_unscored else []),
        *pace.parts(meter),
        *counts_of(meter),
    ]


def counts_of(meter: Meter) -> list[str]:
    """Requests and tokens, those that are not zero.

    >>> counts_of(Meter(n_calls=3, n_cached=1, n_retried=2, n_rate_limited=1))
    ['3 calls', '1 from the store', '2 retried (1 x 429)']
    """
    n_in, n_out = (sum(total[i] for total in meter.tokens.values()) for i in (0, 1))
    n_cached = sum(meter.cached_tokens.values())
    limited = f" ({meter.n_rate_limited:,} x 429)" if meter.n_rate_limited else ""
    return [
        *([f"{meter.n_calls:,} calls"] if meter.n_calls else []),
        *([f"{meter.n_cached:,} from the store"] if meter.n_cached else []),
        *([f"{meter.n_retried:,} retried{limited}"] if meter.n_retried else []),
        *([f"tokens {n_in:,}+{n_out:,}"] if n_in or n_out else []),
        *([f"{n_cached / n_in:.0%} of the prompts cached"] if n_cached and n_in else []),
    ]


def fit(parts: Sequence[str], width: int | None) -> str:
    """As many of the parts as a line holds, the first ones.

    >>> fit(["Judging:  25%", "$1.20", "1/4"], 20)
    'Judging:  25%, $1.20'
    """
    line = ", ".join(parts)
    if width is None or len(line) <= width:
        return line
    n = next((n for n in range(len(parts), 0, -1) if len(", ".join(parts[:n])) <= width), 1)
    return ", ".join(parts[:n])[:width]


def end_other_bars() -> None:
    """Leave the bars of others as they stand, where a run ends before they are full."""
    for bar in list(getattr(tqdm, "_instances", ())):
        if not isinstance(bar, _Line):
            bar.close()


class _Lines:
    """Judging as lines in a log: one a minute, and one of what was stopped."""

    def __init__(self, stream: TextIO, pace: Pace) -> None:
        self._stream = _Lenient(stream)
        self._pace = pace
        self._latest_s = time.monotonic()
        self._is_begun = False

    def refresh(self, meter: Meter) -> None:
        if time.monotonic() - self._latest_s >= _LINE_S:
            self._latest_s, self._is_begun = time.monotonic(), True
            self._write(parts_of(meter, self._pace))

    def end(self, meter: Meter, title: str) -> None:
        if self._is_begun or meter.n_done < meter.n_submitted:
            self._write(parts_of(meter, self._pace, title))

    def _write(self, parts: Sequence[str]) -> None:
        self._stream.write(f"{', '.join(parts)}\n")
        self._stream.flush()


class _Terminal:
    """Judging as a line that is drawn over itself."""

    def __init__(self, stream: TextIO, pace: Pace, meter: Meter, idle_s: float) -> None:
        self._pace = pace
        self._idle_s = idle_s
        self._n_drawn = meter.n_done
        _Line.parts = parts_of(meter, pace)
        self._line = _Line(
            total=meter.n_submitted,
            file=_Lenient(stream),
            # Asked for at every drawing: a terminal may be resized.
            dynamic_ncols=True,
            miniters=0,
        )
        self._drawn_s = time.monotonic()
        self._free_s = -inf
        """Until when something else is written."""
        _stand(self)

    def refresh(self, meter: Meter) -> None:
        now_s = time.monotonic()
        wait_s = self._idle_s if meter.n_done == self._n_drawn else _LIVELY_S
        if now_s >= max(self._drawn_s + wait_s, self._free_s):
            self._drawn_s, self._n_drawn = now_s, meter.n_done
            self._line.parts = parts_of(meter, self._pace)
            self._line.refresh()

    def end(self, meter: Meter, title: str) -> None:
        _stand(None)
        self._line.parts = parts_of(meter, self._pace, title)
        self._line.close()

    def make_room(self) -> None:
        """Take the line away for a moment: something else is written."""
        with tqdm.get_lock():  # type: ignore[no-untyped-call] # its stubs
            for line in list(getattr(tqdm, "_instances", ())):
                line.clear(nolock=True)
        self._drawn_s, self._free_s = -inf, time.monotonic() + _LOGGING_S


class _Line(tqdm):  # type: ignore[type-arg] # generic in its stubs alone
    """A line of tqdm's, which keeps several bars apart, with words of our own."""

    parts: Sequence[str] = ()

    def display(  # type: ignore[override] # its stubs know no value, and it has one
        self, msg: str | None = None, pos: int | None = None
    ) -> bool | None:
        """As tqdm's, which draws nothing on a terminal that was not told its height."""
        if self.nrows is not None and self.nrows < 0:
            self.nrows = None
        drawn: bool | None = super().display(msg, pos)
        return drawn

    def __str__(self) -> str:
        columns = self.format_dict["ncols"]
        if columns is not None and columns < 0:
            # A terminal that was not told its size, as in some containers; tqdm takes one off.
            columns = _USUAL_COLUMNS
        # In the last column some terminals begin the next line.
        return fit(self.parts, None if columns is None else max(1, columns - 1))

    @staticmethod
    def status_printer(  # type: ignore[override] # its stream is ours
        file: TextIO,
    ) -> Callable[[str], None]:
        """What draws: tqdm's own fills up with blanks, too many where a terminal got narrower."""

        def draw(text: str) -> None:
            file.write(f"\r{text}{_ERASE}")
            file.flush()

        return draw


class _Lenient:
    """A stream whose failing writes are dropped: it may be closed, or a file on a full disk.

    tqdm keeps its lock where a write raises, and then every other bar of the process hangs.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()


_standing: tuple[int, _Terminal] | None = None
"""The process that draws the line, and the line, where one stands."""


def _stand(line: _Terminal | None) -> None:
    """Have what is logged begin on a line of its own while this one stands."""
    global _standing  # noqa: PLW0603 - loguru has one patcher for the process, too
    _standing = None if line is None else (os.getpid(), line)
    core = getattr(logger, "_core", None)
    if line is not None and getattr(core, "patcher", None) is None:
        logger.configure(patcher=_make_room)


def _make_room(_: Record) -> None:
    standing = _standing
    # A forked child would wait for a lock that its parent held.
    if standing is not None and standing[0] == os.getpid():
        standing[1].make_room()


def _is_terminal(stream: TextIO) -> bool:
    with suppress(OSError, ValueError):
        return stream.isatty()
    return False
