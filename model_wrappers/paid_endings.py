"""A run that is ended by Ctrl-C, by a job manager or by an error loses nothing that is paid for."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Terminated(BaseException):
    """SIGTERM came; no ``Exception``, so that nothing takes it for an error of a clip's."""


@contextmanager
def finishing(finish: Callable[[], object]) -> Iterator[None]:
    """Have something done where a block is left before its end, whatever ends it.

    SIGTERM, which would end the process on the spot, unwinds the block first, and then ends it as
    it does; where somebody else handles it, or in a thread, it is left alone. A second Ctrl-C, or
    SIGTERM, ends ``finish``, too.
    """

    def terminate(*_: object) -> NoReturn:
        raise Terminated

    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    )
    if is_ours:
        signal.signal(signal.SIGTERM, terminate)
    is_terminated = False
    try:
        yield
    except BaseException as error:
        is_terminated = isinstance(error, Terminated)
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        finish()
        raise
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if is_terminated:
            os.kill(os.getpid(), signal.SIGTERM)
