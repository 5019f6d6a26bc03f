"""Where the reply to a request comes from: the store, the same request under way, or the judge."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.lexical_client import OFFLINE
from lmms_eval_captions.judges.endpoint.progress.meter import Meter
from lmms_eval_captions.judges.endpoint.progress.trouble import Trouble
from lmms_eval_captions.judges.endpoint.request import Reply, Request, is_too_late
from lmms_eval_captions.judges.endpoint.sender import Sender
from lmms_eval_captions.judges.endpoint.slots import Slots
from lmms_eval_captions.judges.endpoint.store.stored_replies import StoredReplies, UnsavedReplyError
from lmms_eval_captions.judges.errors import JudgeError, JudgeStoppedError, TooLateError

_ANEW_S: Final = 1.0
"""Within so long another process whose folder was removed has written its replies anew."""
_LOOK_S: Final = 0.25
FRESH_S: Final = 0.05
"""Age of the latest look into the store, at most, when a request is sent."""


class ReplySource:
    """Has each request answered once; to be used inside the event loop alone.

    Args:
        stored: The stored replies.
        sender: Sends what nobody has asked yet.
        slots: Where a request gives up its slot, and stands aside.
        meter: Counts replies that cost nothing, and requests that are under way.
        trouble: Is told where nothing more is asked.
        config: How to talk to the endpoint.
        ended_by: The error that those who wait for a request get where an exception that is no
            ``Exception`` ended it.
    """

    def __init__(
        self,
        *,
        stored: StoredReplies,
        sender: Sender,
        slots: Slots,
        meter: Meter,
        trouble: Trouble,
        config: EngineConfig,
        ended_by: Callable[[BaseException], JudgeStoppedError],
    ) -> None:
        self._stored = stored
        self._sender = sender
        self._slots = slots
        self._meter = meter
        self._trouble = trouble
        self._alias = config.alias
        self._ended_by = ended_by
        self._under_way: dict[bytes, asyncio.Future[Reply]] = {}
        self._is_away = False
        """Whether a stored reply was waited for in vain, and none was read since."""

    async def get(self, question_index: int, request: Request, attempt: int) -> tuple[Reply, bool]:
        """The reply, and whether it cost nothing.

        Args:
            question_index: Number of the question, in the order of submission.
            request: What is asked.
            attempt: 0, and one more for each fresh sample after an unreadable reply.

        Raises:
            JudgeError: If there is none, or it could not be saved.
        """
        offline = OFFLINE.get(request.model)
        if offline is not None:
            return await offline.complete(request, attempt, timeout_s=request.timeout_s), False
        key = request.key(request.body(attempt), self._alias)
        while True:
            stored = await self._look_up(request.model, key)
            if stored is not None:
                self._meter.count_stored(stored.endpoint)
                return stored, True
            twin = self._under_way.get(key)
            if twin is None or twin.done():
                return await self._send_once(question_index, request, attempt, key)
            self._slots.stand_aside(question_index)
            try:
                reply = await asyncio.shield(twin)
            except TooLateError:
                if is_too_late(request):
                    raise
            else:
                self._meter.count_shared()
                return reply, True

    def has(self, request: Request, attempt: int) -> bool:
        """Whether the reply to a fresh sample is in the store."""
        return self._stored.has(request.model, request.key(request.body(attempt), self._alias))

    async def _send_once(
        self, question_index: int, request: Request, attempt: int, key: bytes
    ) -> tuple[Reply, bool]:
        """Send and save; identical requests of this process meanwhile wait for this one."""
        twin: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        try:
            self._under_way[key] = twin
            # It may have been stored while this one waited for its turn.
            stored = await self._look_up(request.model, key, max_age_s=FRESH_S)
            if stored is None:
                reply = await self._send(question_index, request, attempt)
                await self._stored.save(request.model, key, reply)
            else:
                reply = stored
                self._meter.count_stored(stored.endpoint)
            twin.set_result(reply)
        except JudgeError as error:
            if isinstance(error, UnsavedReplyError):
                self._sender.stop(request.model, JudgeStoppedError(str(error.__cause__)))
            _fail(twin, error)
            raise
        except BaseException as error:
            # A defect of ours, or the end: who waits for this one must not wait for ever.
            _fail(twin, error if isinstance(error, Exception) else self._ended_by(error))
            raise
        finally:
            twin.cancel()  # does nothing where it is settled
            self._under_way.pop(key, None)
            self._slots.release()
        return reply, stored is not None

    async def _send(self, question_index: int, request: Request, attempt: int) -> Reply:
        self._meter.n_asking += 1
        try:
            self._stored.require_writable()
            return await self._sender.send(question_index, request, attempt)
        except JudgeStoppedError as error:
            self._trouble.stopped(request.model, error)
            raise
        finally:
            self._meter.n_asking -= 1

    async def _look_up(
        self, model: str, key: bytes, *, max_age_s: float | None = None
    ) -> Reply | None:
        """A stored reply; where its file was removed, once whoever wrote it has done so anew."""
        # Where files are gone for good, thousands of requests do not wait a second each.
        deadline_s = time.monotonic() + (0.0 if self._is_away else _ANEW_S)
        while True:
            try:
                reply = self._stored.get(model, key, max_age_s=max_age_s)
            except JudgeStoppedError:
                if time.monotonic() >= deadline_s:
                    self._is_away = True
                    raise
                await asyncio.sleep(_LOOK_S)
            else:
                self._is_away = self._is_away and reply is None
                return reply


def _fail(twin: asyncio.Future[Reply], error: Exception) -> None:
    """Hand an error to those that wait for the same request."""
    twin.set_exception(error)
    twin.exception()  # seen: nobody may be waiting
