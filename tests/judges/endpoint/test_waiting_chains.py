"""Which chain starts next: first ones ahead, no slot idle, where the replica has room."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from lmms_eval_captions.judges.endpoint.head_start import HeadStart
from lmms_eval_captions.judges.endpoint.replicas import Replicas
from lmms_eval_captions.judges.endpoint.waiting_chains import WaitingChains, Work

N_SLOTS = 4


class Always(HeadStart):
    """A head start for every caption."""

    def __init__(self) -> None:
        super().__init__(64)
        self.state = "on"


class Never(HeadStart):
    """None for any."""

    def __init__(self) -> None:
        super().__init__(1)


class Queue:
    """Waiting chains by names: ``b2`` is the third of the second caption.

    Args:
        head_start: Who has one.
        n_questions: Of each caption.
        n_replicas: Of the endpoint.
    """

    def __init__(self, head_start: HeadStart, *n_questions: int, n_replicas: int = 1) -> None:
        self.replicas = Replicas([f"http://host{number}/v1" for number in range(n_replicas)])
        self.chains = WaitingChains(head_start, self.replicas)
        self.names: dict[Work, str] = {}
        self.n_started = 0
        for letter, n in zip("abcdefgh", n_questions, strict=False):
            self.add(letter, n, letter.encode())

    def add(self, letter: str, n: int, about: bytes | None) -> None:
        """Queue the chains of a caption."""
        works = [self._work() for _ in range(n)]
        self.names.update({work: f"{letter}{index}" for index, work in enumerate(works)})
        self.chains.add(works, about)

    def pop(self, n: int = 1, *, now_s: float = 0.0) -> str:
        """The names of the next so many."""
        return " ".join(self._pop(now_s) for _ in range(n))

    def rest(self) -> Iterator[str]:
        """The names of all that are left."""
        while self.chains:
            yield self._pop(0.0)

    def _pop(self, now_s: float) -> str:
        name = self.names[self.chains.pop(self.n_started, N_SLOTS, now_s)]
        self.n_started += 1
        return name

    def _work(self) -> Work:
        async def work(_: int) -> None:
            await asyncio.sleep(0)

        return work


def test_without_a_head_start_chains_start_in_the_order_of_submission() -> None:
    """Those of one caption next to each other."""
    assert list(Queue(Never(), 3, 1, 2).rest()) == ["a0", "a1", "a2", "b0", "c0", "c1"]


def test_the_others_follow_when_the_first_has_got_through() -> None:
    """Meanwhile the next captions' first ones go out: no slot is idle."""
    queue = Queue(Always(), 4, 4, 4)
    assert queue.pop(3) == "a0 b0 c0"
    assert queue.chains.follow(1)
    assert queue.pop(2) == "b1 b2"
    assert queue.chains.follow(0)
    assert queue.pop(4) == "a1 a2 a3 b3"


def test_what_has_no_head_start_goes_out_at_once() -> None:
    """Requests that are about no caption, and captions of one question."""
    queue = Queue(Always(), 1)
    queue.add("z", 3, None)
    assert list(queue.rest()) == ["a0", "z0", "z1", "z2"]


def test_a_slot_is_never_idle_where_only_held_chains_are_left() -> None:
    """Those of the earliest caption are held no longer."""
    queue = Queue(Always(), 3, 3)
    assert list(queue.rest()) == ["a0", "b0", "a1", "a2", "b1", "b2"]


def test_the_next_caption_is_begun_before_the_last_chain_of_this_one() -> None:
    """With few chains left of those begun, so that its first reply is in when it is needed."""
    queue = Queue(Always(), 4, 4, 4)
    assert queue.pop() == "a0"
    queue.chains.follow(0)
    # As long as half of the slots' worth is in stock the present one goes on.
    assert queue.pop(3) == "a1 a2 b0"


@pytest.mark.parametrize("how", ["end", "reply", "time"])
def test_chains_are_held_until_anything_happens(how: str) -> None:
    """The first one ended, got through, or took too long."""
    queue = Queue(Always(), 2, 9)
    assert queue.pop(now_s=100.0) == "a0"
    if how == "end":
        queue.chains.on_end(0)
    elif how == "reply":
        assert queue.chains.follow(0)
    else:
        assert not queue.chains.follow_if_due(104.9)
        assert queue.chains.follow_if_due(105.0)
    assert not queue.chains.follow(0)
    assert queue.pop(2) == "b0 a1"


def test_a_chain_gives_way_to_one_whose_replica_has_room() -> None:
    """A caption whose replica is busy waits, where the next ones belong elsewhere."""
    queue = Queue(Never(), 3, 3, 3, 3, 3, 3, n_replicas=2)
    orders = {letter: queue.replicas.order(letter.encode())[0] for letter in "abcdef"}
    assert set(orders.values()) == {0, 1}
    queue.replicas.in_flight[orders["a"]] = 4
    elsewhere = next(letter for letter in "bcdef" if orders[letter] != orders["a"])
    assert queue.pop(2) == f"{elsewhere}0 {elsewhere}1"
    queue.replicas.in_flight[1 - orders["a"]] = 4
    assert queue.pop(2) == f"{elsewhere}2 a0"


def test_where_no_replica_of_the_next_captions_has_room_the_first_one_goes_out() -> None:
    """To whichever replica: a slot is free."""
    queue = Queue(Never(), 3, 3, n_replicas=2)
    own = {queue.replicas.order(letter)[0] for letter in (b"a", b"b")}
    for index in own:
        queue.replicas.in_flight[index] = 9
    if len(own) == 2:
        queue.replicas.in_flight[:] = [9, 9]
    assert queue.pop() == "a0"
