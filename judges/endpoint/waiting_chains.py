"""Chains that are yet to start, and which of them is next.

They start in the order of submission, with two exceptions. Of a caption whose first question has a
head start the others are held until it has got through; meanwhile the next captions' first
questions go out, so that no slot is idle. And where an endpoint has several replicas, a chain whose
caption's replica has its share of the requests in flight gives way to one whose replica has not.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from lmms_eval_captions.judges.endpoint.head_start import HeadStart, Observed
from lmms_eval_captions.judges.endpoint.replicas import Replicas
from lmms_eval_captions.judges.endpoint.request import Reply

Work = Callable[[int], Awaitable[None]]
"""What runs a chain, given the number of its question."""
_OF_EACH_REPLICA: Final = 4
"""Captions that are looked at for each replica, until one is found whose replica has room."""
_IN_STOCK: Final = 0.5
"""Chains of begun captions, as a share of the slots, below which the next caption begins: of two
requests each, mostly, so many start until its first reply is in."""


@dataclass(slots=True, order=True)
class _Caption:
    """Chains of one caption, or of something else, that have not started."""

    number: int
    works: list[Work] = field(compare=False)
    """What runs each of them, the last one first."""
    order: tuple[int, ...] | None = field(compare=False)
    """Its replicas, the first one first; ``None`` where that does not matter."""
    is_one: bool = field(compare=False)
    """Whether they are of one caption, so that one of them may go out before the others."""
    is_looked_at: bool = field(default=False, compare=False)
    """Whether it is known if one does."""
    has_head_start: bool = field(default=False, compare=False)
    """Whether the chain that starts next is to go out before the others."""
    observed: Observed | None = field(default=None, compare=False)
    due_s: float = field(default=0.0, compare=False)
    """When its chains are held no longer."""


class WaitingChains:
    """A queue of captions' chains; to be used inside the event loop alone.

    Args:
        head_start: Says whose first question goes ahead.
        replicas: Of the endpoint.
    """

    def __init__(self, head_start: HeadStart, replicas: Replicas) -> None:
        self._head_start = head_start
        self._replicas = replicas
        self._n_captions = 0
        self._fresh: deque[_Caption] = deque()
        """Captions of which no chain has started."""
        self._ready: list[_Caption] = []
        """Those of which one has and others may, in the order of submission."""
        self._held: dict[int, _Caption] = {}
        """Question that goes ahead to the caption whose others are held."""
        self._observed: dict[int, Observed] = {}
        """Question that has started to what its replies tell."""
        self._n_chains = 0
        self._n_begun = 0
        """Chains of captions in ``_ready`` and ``_held``."""

    def __bool__(self) -> bool:
        return self._n_chains > 0

    def add(self, works: Iterable[Work], about: bytes | None = None) -> None:
        """Queue chains that are submitted together.

        Args:
            works: What runs each.
            about: What tells their caption from others, ``None`` where they are of none, or of
                several.
        """
        order = None
        if about is not None and len(self._replicas) > 1:
            order = self._replicas.order(about)
        chains = list(works)[::-1]
        self._n_chains += len(chains)
        self._fresh.append(_Caption(self._n_captions, chains, order, about is not None))
        self._n_captions += 1

    def pop(self, question_index: int, n_slots: int, now_s: float) -> Work:
        """The chain that starts next; there must be one.

        Args:
            question_index: The number that its question gets.
            n_slots: Requests that may be in flight.
            now_s: The time.
        """
        caption = self._next(n_slots, now_s)
        self._n_chains -= 1
        self._n_begun -= 1
        work = caption.works.pop()
        if caption.observed is not None:
            self._observed[question_index] = caption.observed
        if caption.has_head_start or not caption.works:
            self._ready.remove(caption)
        if caption.has_head_start and caption.works:
            caption.has_head_start = False
            caption.due_s = now_s + self._head_start.hold_s
            self._held[question_index] = caption
        return work

    def follow(self, question_index: int) -> bool:
        """Hold a caption's chains no longer, where this question is the one that went ahead.

        Returns:
            Whether there are such.
        """
        caption = self._held.pop(question_index, None)
        if caption is None:
            return False
        insort(self._ready, caption)
        return True

    def follow_if_due(self, now_s: float) -> bool:
        """Hold no chain any longer whose time is up; whether there is one."""
        due = [index for index, caption in self._held.items() if caption.due_s <= now_s]
        for index in due:
            self.follow(index)
        return bool(due)

    def on_reply(self, question_index: int, reply: Reply, seconds: float) -> None:
        """The endpoint answered a request of a question, after so many seconds on the wire."""
        if self._head_start.state != "off":
            self._head_start.on_reply(
                self._observed.get(question_index),
                input_tokens=reply.input_tokens,
                cached_tokens=reply.cached_tokens,
                seconds=seconds,
            )

    def on_end(self, question_index: int) -> None:
        """A question that has started has ended, however it did."""
        self.follow(question_index)
        observed = self._observed.pop(question_index, None)
        if observed is not None:
            self._head_start.on_end(observed)

    def _next(self, n_slots: int, now_s: float) -> _Caption:
        """The caption whose chain starts next, which is then one of those that are ready."""
        if self._n_begun < _IN_STOCK * n_slots:
            leading = self._with_room(self._leading(), now_s)
            if leading is not None:
                return self._begin(leading)
        ready = self._with_room(self._ready, now_s)
        if ready is not None:
            return ready
        fresh = self._with_room(self._fresh, now_s)
        if fresh is not None:
            return self._begin(fresh)
        if not self._ready and self._fresh:
            return self._begin(self._fresh[0])
        if not self._ready:
            # A slot must not be idle.
            self.follow(next(iter(self._held)))
        return self._ready[0]

    def _with_room(self, captions: Iterable[_Caption], now_s: float) -> _Caption | None:
        """The first caption whose replica has room; of the first few."""
        n_replicas = len(self._replicas)
        n_looked_at = 1 if n_replicas == 1 else _OF_EACH_REPLICA * n_replicas
        for caption in islice(captions, n_looked_at):
            if caption.order is None or self._replicas.has_room(caption.order, now_s):
                return caption
        return None

    def _leading(self) -> Iterator[_Caption]:
        """Captions of the next ones that begin with one question alone."""
        n_replicas = len(self._replicas)
        n_looked_at = 1 if n_replicas == 1 else _OF_EACH_REPLICA * n_replicas
        for caption in islice(self._fresh, n_looked_at):
            self._look_at(caption)
            if caption.has_head_start:
                yield caption

    def _begin(self, caption: _Caption) -> _Caption:
        self._look_at(caption)
        if self._fresh[0] is caption:
            self._fresh.popleft()
        else:
            self._fresh.remove(caption)
        insort(self._ready, caption)
        self._n_begun += len(caption.works)
        return caption

    def _look_at(self, caption: _Caption) -> None:
        """Find out whether a caption has a head start, when it is about to begin."""
        if caption.is_looked_at:
            return
        caption.is_looked_at = True
        if caption.is_one:
            begun = self._head_start.begin(len(caption.works))
            caption.observed = begun if isinstance(begun, Observed) else None
            caption.has_head_start = begun.has_head_start if isinstance(begun, Observed) else begun
