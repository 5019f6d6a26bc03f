"""What is said last, when the process ends: after lmms-eval's tables and all that is logged."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from functools import cache, partial
from typing import Final, TextIO

_RUN: Final = "lmms_eval_captions.lmms_eval_tasks.this_run"


@cache
def say_at_exit() -> None:
    """Have the runs of this process shown when it ends; to be called early, and once is enough.

    Handlers are called last in, first out: what judges ends before.
    """
    atexit.register(partial(_say, os.getpid()))


def _say(pid: int) -> None:
    """Show the runs that are over, and why others ended early; nothing in a forked child."""
    if os.getpid() == pid and _RUN in sys.modules and (os.environ.get("RANK") or "0") == "0":
        say()


def say() -> None:
    """Print the screen of every run of this process that is over, and errors behind them."""
    from lmms_eval_captions.lmms_eval_tasks.summary.screen import screen_of
    from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN

    # Who reads may be gone, as behind `| head`.
    with suppress(OSError, ValueError):
        for run in THIS_RUN.finished:
            _write(sys.stdout, f"{screen_of(run)}\n")
        for error in dict.fromkeys(THIS_RUN.errors):
            _write(sys.stderr, f"{error}\n")


def _write(stream: TextIO | None, text: str) -> None:
    """Write a text at once, with what the stream's encoding does not know replaced."""
    if stream is None:
        return
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()
