"""Captions that a server or engine writes, as futures."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from lmms_eval_captions.judges.errors import CaptionError, CaptionsError
from lmms_eval_captions.model_wrappers.caption_jobs import Caption

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")


class Promises:
    """Captions in flight, of which it bounds the number.

    Args:
        most: Captions under way at once, >= 1.
        words: Describes an error that is none of this package's.
    """

    def __init__(self, most: int, words: Callable[[BaseException], str] = repr) -> None:
        self._under_way = threading.Semaphore(most)
        self._words = words

    def caption(
        self, ask: Callable[[], Future[R]], read: Callable[[R], Caption]
    ) -> Future[Caption]:
        """Ask as soon as there is room, and return the promise; it is settled however that ends.

        Args:
            ask: Asks someone.
            read: Makes a caption of the answer; may raise a ``CaptionError``.
        """
        self._under_way.acquire()
        try:
            asked = ask()
        except BaseException:
            self._under_way.release()
            raise
        caption: Future[Caption] = Future()

        def finish(done: Future[R]) -> None:
            self._under_way.release()
            if done.cancelled():  # the run has ended
                caption.cancel()
                return
            try:
                caption.set_result(read(done.result()))
            except CaptionsError as error:
                caption.set_exception(error)
            except BaseException as error:  # noqa: BLE001 - who waits must not wait for ever
                caption.set_exception(CaptionError(self._words(error)))

        asked.add_done_callback(finish)
        return caption
