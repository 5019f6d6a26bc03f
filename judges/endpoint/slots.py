"""Which requests are on the wire: as many as may be, those of the earliest questions first."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.limits import Pace
from lmms_eval_captions.judges.errors import TooLateError

AnyTask = asyncio.Task[Any]
Work = Callable[[int], Awaitable[None]]
"""Runs a chain, given the number of its question."""

_LOOK_S: Final = 0.05
_END_S: Final = 10.0
"""Seconds that chains have to end in once they are cancelled."""


class Slots:
    """Hands slots to requests, and starts chains for those that are free; for the event loop alone.

    A request holds a slot on the wire and while its reply is saved, and nowhere else. Questions
    are numbered as they start, mostly in the order of submission, and a slot goes to the waiting
    request whose question has the lowest number, so that the questions of one caption stay next to
    each other. A chain is started where a slot is free that no request waits for: few are alive at
    a time.

    Args:
        limit: Tells how many slots there are now, >= 1.
        pace: How fast requests may go out; who waits for that holds no slot.
        most_chains: Bound of the chains that have started and not ended, >= 1.
        on_defect: Told of an exception after which requests might wait for ever.
    """

    def __init__(
        self,
        limit: Callable[[], int],
        pace: Pace,
        *,
        most_chains: int,
        on_defect: Callable[[BaseException], None],
    ) -> None:
        self._limit = limit
        self._pace = pace
        self._most_chains = most_chains
        self._on_defect = on_defect
        self._waiting: deque[Work] = deque()
        """Chains that have not started, in the order of submission."""
        self._n_started = 0
        self._chains: dict[AnyTask, int] = {}
        """Tasks of chains that have started and not ended, to the numbers of their questions."""
        self._tasks: set[AnyTask] = set()
        """These, and the tasks of requests that a chain has gathered."""
        self._expected: set[int] = set()
        """Questions whose first request is yet to come: a free slot is kept for each."""
        self._holders: set[AnyTask] = set()
        """Tasks whose request has a slot."""
        self._queue: list[tuple[int, int, asyncio.Future[None], AnyTask]] = []
        """A heap of the requests that wait: question, order of asking, what wakes it, its task."""
        self._order = count()
        self._is_due = False
        """Whether free slots will be handed out in a moment."""
        self._timer: asyncio.TimerHandle | None = None
        """Runs out when the rate allows one more request."""
        self._closing = False

    def add(self, works: Iterable[Work]) -> None:
        """Queue chains; they start with a :meth:`fill`."""
        self._waiting.extend(works)

    def fill(self) -> None:
        """Hand out the slots that are free."""
        try:
            self._fill()
        except BaseException as error:
            self._on_defect(error)
            raise

    def take(self, question_index: int) -> bool:
        """Whether this task's request has a slot at once; else it is to :meth:`wait` for one."""
        task = self._task_of_request(question_index)
        is_first = not self._queue or question_index < self._queue[0][0]
        if not is_first or len(self._holders) >= self._limit():
            return False
        if not self._pace.take(time.monotonic()):
            return False
        self._holders.add(task)
        return True

    async def wait(self, question_index: int, until_s: float | None = None) -> None:
        """Wait for a slot, behind the requests of earlier questions.

        Args:
            question_index: Number of the question.
            until_s: When, by :func:`time.monotonic`, that is in vain, by default never.

        Raises:
            TooLateError: If it is.
        """
        task, loop = self._task_of_request(question_index), asyncio.get_running_loop()
        granted = loop.create_future()
        heappush(self._queue, (question_index, next(self._order), granted, task))
        self.fill()
        if until_s is None:
            await granted
            return
        timer = loop.call_later(until_s - time.monotonic(), _be_late, granted)
        try:
            await granted
        finally:
            timer.cancel()

    def release(self) -> None:
        """Give up the slot of this task's request, if it has one.

        It is free in a moment only, so that the question's next request finds it.
        """
        self._holders.discard(_this_task())
        self._fill_soon()

    def stand_aside(self, question_index: int) -> None:
        """Keep no slot for this task's request: it waits for what somebody else has asked."""
        self._task_of_request(question_index)
        self._fill_soon()

    async def finish(self, within_s: float) -> None:
        """Hand out no further slot, and wait a while for the requests that have one.

        Args:
            within_s: The longest wait; one that is to be sent again is not waited for.
        """
        self._limit = lambda: 0
        sent = set(self._holders)
        deadline_s = time.monotonic() + within_s
        while sent & self._holders and time.monotonic() < deadline_s:
            await asyncio.sleep(_LOOK_S)
        if ended := sent - self._holders:  # chains have their say
            await asyncio.wait(ended, timeout=_LOOK_S)

    async def close(self) -> None:
        """Cancel everything under way, and wait a moment until it has ended."""
        self._closing = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_END_S)

    @property
    def closing(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closing

    def _fill(self) -> None:
        limit = self._limit()
        while self._queue and len(self._holders) < limit:
            *_, granted, task = self._queue[0]
            if granted.done() or task.done():
                heappop(self._queue)
            elif self._pace.take(time.monotonic()):
                heappop(self._queue)
                self._holders.add(task)
                granted.set_result(None)
            else:
                self._fill_when_rate_allows()
                return
        # A storm of failures must not start every chain there is.
        while (
            self._waiting
            and not self._queue
            and len(self._holders) + len(self._expected) < limit
            and len(self._chains) < self._most_chains
            and not self._closing
        ):
            self._start()

    def _start(self) -> None:
        question_index = self._n_started
        work = self._waiting.popleft()
        self._n_started += 1
        task = asyncio.ensure_future(work(question_index))
        self._chains[task] = question_index
        self._expected.add(question_index)
        self._follow(task)

    def _task_of_request(self, question_index: int) -> AnyTask:
        """The task that asks, from now on known; its question has asked."""
        self._expected.discard(question_index)
        task = _this_task()
        if task not in self._tasks:
            self._follow(task)
        return task

    def _follow(self, task: AnyTask) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: AnyTask) -> None:
        """Give the slot of a task that ended, however it did, to another request."""
        try:
            self._tasks.discard(task)
            self._holders.discard(task)
            question_index = self._chains.pop(task, None)
            if question_index is not None:
                self._expected.discard(question_index)
            self._fill()
            # A chain deals with what is raised in it, and in the requests that it gathers.
            if question_index is not None and not self._closing:
                task.result()
        except BaseException as error:  # noqa: BLE001 - told to who can end judging
            self._on_defect(error)

    def _fill_soon(self) -> None:
        if not self._is_due:
            asyncio.get_running_loop().call_soon(self._fill_now)
            self._is_due = True

    def _fill_when_rate_allows(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._pace.wait_s(), self._fill_now)

    def _fill_now(self) -> None:
        self._is_due = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.fill()


def _be_late(granted: asyncio.Future[None]) -> None:
    if not granted.done():
        granted.set_exception(TooLateError())


def _this_task() -> AnyTask:
    return asyncio.current_task()  # type: ignore[return-value]  # a request is within a task
