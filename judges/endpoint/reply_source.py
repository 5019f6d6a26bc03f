"""Where the reply to a request comes from: the store, the same request under way, or the judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.lexical_client import OFFLINE
from lmms_eval_captions.judges.endpoint.progress.meter import Meter
from lmms_eval_captions.judges.endpoint.progress.trouble import Trouble
from lmms_eval_captions.judges.endpoint.request import Reply, Request, is_too_late
from lmms_eval_captions.judges.endpoint.sender import Sender
from lmms_eval_captions.judges.endpoint.slots import Slots
from lmms_eval_captions.judges.endpoint.store import StoredReplies, UnsavedReplyError
from lmms_eval_captions.judges.errors import JudgeError, JudgeStoppedError, TooLateError


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
            stored = self._stored.get(request.model, key)
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
            reply = await self._send(question_index, request, attempt)
            await self._stored.save(request.model, key, reply)
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
        return reply, False

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


def _fail(twin: asyncio.Future[Reply], error: Exception) -> None:
    """Hand an error to those that wait for the same request."""
    twin.set_exception(error)
    twin.exception()  # seen: nobody may be waiting
