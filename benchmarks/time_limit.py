"""Gives up a read that takes too long, whatever it is doing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SIGNALS: Final = {
    signal.ITIMER_REAL: signal.SIGALRM,
    signal.ITIMER_VIRTUAL: signal.SIGVTALRM,
}


class TooSlowError(BaseException):
    """A read was given up; no ``Exception``, so that a reader cannot catch it."""


@contextmanager
def time_limit(seconds: float, timer: int = signal.ITIMER_VIRTUAL) -> Iterator[None]:
    """Raise where what stands within takes longer; in the main thread alone.

    Args:
        seconds: Limit.
        timer: Of processor time, or ``signal.ITIMER_REAL``.

    Raises:
        TooSlowError: If it does.
    """
    handler = signal.signal(_SIGNALS[timer], _give_up)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(_SIGNALS[timer], handler)


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise TooSlowError
