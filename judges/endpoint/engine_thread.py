"""The engine's event loop, in a thread of its own, and what those that wait are told at its end."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.gc_threshold import rarer_collections
from lmms_eval_captions.judges.endpoint.redaction import scrub
from lmms_eval_captions.judges.endpoint.roles import WORDS
from lmms_eval_captions.judges.errors import JudgeStoppedError

_TICK_S: Final = 0.25
_CLOSE_S: Final = 60.0
"""Seconds that the thread has to end in: a file system may have stopped answering."""
_ENDED: Final = "{role.work} was ended before this caption's turn"


class EngineThread:
    """Settles every future that it takes on, however it ends; methods say where they are called.

    Args:
        config: Names what is asked, and what must not be shown.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._role = WORDS[config.role]
        self._config = config
        self._futures: set[Future[Any]] = set()
        self._said: set[str] = set()
        self._submitting = threading.Lock()
        self._closed = False
        self._ticks: Sequence[Callable[[], None]] = ()
        self._loop = asyncio.new_event_loop()
        self._ending: asyncio.Future[None] = self._loop.create_future()
        self.defect: str | None = None
        """What of ours ended judging before its time, ``None`` where nothing did."""

    def start(
        self, *, ticks: Sequence[Callable[[], None]], shut_down: Callable[[], Awaitable[None]]
    ) -> None:
        """Begin.

        Args:
            ticks: What is done a few times a second, and can be done without.
            shut_down: What is done at the end.
        """
        self._ticks = ticks
        self._thread = threading.Thread(
            target=self._serve, args=(shut_down,), name="judge", daemon=True
        )
        self._thread.start()

    def post(self, future: Future[Any], act: Callable[[], None]) -> None:
        """Do something in the loop, after which the future is settled; from any thread."""
        with self._submitting:
            if self._closed or not self._thread.is_alive():
                future.set_exception(self.over())
            else:
                self._futures.add(future)
                future.add_done_callback(self._futures.discard)
                self._loop.call_soon_threadsafe(act)

    def close(self) -> None:
        """End the loop, after what was posted before; from any thread."""
        with self._submitting:
            if not self._closed and self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._end)
            self._closed = True
        self._thread.join(_CLOSE_S)
        self._settle_all()

    def on_defect(self, error: BaseException) -> None:
        """End judging: after this exception captions might wait for ever; in the loop."""
        try:
            if self.defect is None and not self._ending.done():
                self.defect = type(error).__name__
                self.defect = self.words(error)
                logger.error("{} ends after an internal error: {}", self._role.work, self.defect)
        finally:
            self._end()

    def words(self, error: object) -> str:
        """An exception in a line, without the key."""
        return scrub(repr(error), self._config.api_key, *self._config.urls)

    def over(self, defect: str | None = None) -> JudgeStoppedError:
        """The error of captions that are not judged any more."""
        defect = defect or self.defect
        if defect is None:
            return JudgeStoppedError(_ENDED.format(role=self._role))
        return JudgeStoppedError(
            f"{self._role.work} ended after an internal error: {defect}; what was answered is "
            "kept, run the same command again to go on"
        )

    def attempt(self, act: Callable[[], None]) -> None:
        """Do something that judging can do without; what it raises is said once; in the loop."""
        try:
            act()
        except Exception as error:  # noqa: BLE001 - the others are done all the same
            if act.__name__ not in self._said:
                self._said.add(act.__name__)
                logger.error(
                    "{} failed, {} goes on: {}", act.__name__, self._role.work, self.words(error)
                )

    def _serve(self, shut_down: Callable[[], Awaitable[None]]) -> None:
        try:
            asyncio.set_event_loop(self._loop)
            self._loop.set_exception_handler(self._on_callback_error)
            self._loop.call_soon(self._tick)
            with rarer_collections():
                self._loop.run_until_complete(self._ending)
        except BaseException as error:  # noqa: BLE001 - told to all that wait
            self.on_defect(error)
        finally:
            try:
                with self._submitting:
                    self._closed = True
                self._loop.run_until_complete(shut_down())
            except BaseException as error:  # noqa: BLE001 - told to all that wait
                self.on_defect(error)
            finally:
                self._settle_all()
                self._loop.close()

    def _tick(self) -> None:
        self._loop.call_later(_TICK_S, self._tick)
        for act in self._ticks:
            self.attempt(act)

    def _end(self) -> None:
        """Leave the loop; the thread then shuts down."""
        if not self._ending.done():
            self._ending.set_result(None)

    def _on_callback_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What nobody catches: a callback of ours that raised ends judging, others are noted."""
        error = context.get("exception")
        if isinstance(error, BaseException) and "handle" in context and _is_ours(error):
            self.on_defect(error)
        else:
            logger.debug("{}: {}", context.get("message"), self.words(error))

    def _settle_all(self) -> None:
        for future in list(self._futures):
            settle(future, self.over())


def settle(future: Future[Any], error: Exception) -> None:
    """Give a caption's future an error, where it has no outcome yet."""
    with suppress(InvalidStateError):
        future.set_exception(error)


def _is_ours(error: BaseException) -> bool:
    """Whether code of this folder was under way."""
    folder = str(Path(__file__).parents[1])
    return any(
        frame.f_code.co_filename.startswith(folder)
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )
