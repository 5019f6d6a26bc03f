"""Items that are asked in turn, until it is known whether the judge is the right one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from lmms_eval_captions.metrics.disagreement_test import DisagreementTest, State
from lmms_eval_captions.metrics.exact_share import ExactShare

I = TypeVar("I")  # noqa: E741 - an item
A = TypeVar("A")

_PORTION: Final = 32
"""Items that are asked at once after the first portion."""
_MOST_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Pair:
    """One item that was compared."""

    name: str
    before: str
    """The verdict that is trusted."""
    now: str

    @property
    def differs(self) -> bool:
        """Whether the verdicts are not the same."""
        return self.before != self.now


@dataclass(frozen=True, slots=True)
class Compared:
    """Items that were compared, and what follows."""

    state: State
    pairs: Sequence[Pair]
    """In the order of asking, up to the decision."""
    n_missing: int = 0
    """Items to which no reply came."""

    @property
    def n_different(self) -> int:
        """Items whose verdicts differ."""
        return sum(pair.differs for pair in self.pairs)

    @property
    def agreement(self) -> ExactShare:
        """Share of items with the same verdict."""
        return ExactShare(len(self.pairs) - self.n_different, len(self.pairs))

    @property
    def examples(self) -> list[str]:
        """The first items that differ, in words."""
        differing = [pair for pair in self.pairs if pair.differs][:_MOST_SHOWN]
        return [f"{pair.name}: {pair.before} before, {pair.now} now" for pair in differing]


@dataclass(slots=True)
class InTurn(Generic[I, A]):
    """Asks items in portions, and stops as soon as the test knows.

    Args:
        ask: Asks a portion; an answer for each item.
        compare: What an item and its answer are, ``None`` where no reply came.
        test: What decides.
    """

    ask: Callable[[Sequence[I]], Sequence[A]]
    compare: Callable[[I, A], Pair | None]
    test: DisagreementTest
    answers: list[tuple[I, A]] = field(default_factory=list)
    """All items that were asked, those after the decision, too."""

    def run(self, items: Sequence[I], *, ask_all: bool = False) -> Compared:
        """Compare items.

        Args:
            items: In the order of asking, at most as many as the test takes.
            ask_all: Whether all of them are asked, whatever the first ones show.
        """
        pairs: list[Pair] = []
        n_missing, place, state = 0, 0, self.test.state(0, 0)
        while place < len(items) and (state == "open" or ask_all):
            n = len(items) if ask_all else self.test.least_items if place == 0 else _PORTION
            portion = items[place : place + n]
            place += len(portion)
            for item, answer in zip(portion, self.ask(portion), strict=True):
                self.answers.append((item, answer))
                pair = self.compare(item, answer)
                if pair is None:
                    n_missing += 1
                elif state == "open":
                    pairs.append(pair)
                    state = self.test.state(len(pairs), sum(each.differs for each in pairs))
        return Compared(state, pairs, n_missing)
