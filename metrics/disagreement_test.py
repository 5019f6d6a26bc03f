"""A sequential test of two judges who should be the same: how often do their verdicts differ?

Items come one by one. After each, the test says that the judges are the same (``passed``), that
they are not (``flagged``), or goes on; at the last item it decides. It is a sequential
probability ratio test of a binomial share (Wald 1947) that is cut off at a largest number of items.
What it promises follows from the exact distribution over all paths, :meth:`DisagreementTest.odds`,
and not from Wald's bounds, which hold for a test without an end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import log
from typing import Final, Literal

State = Literal["passed", "flagged", "open"]
"""What a test says after so many items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """What becomes of a judge that differs on a share of all items."""

    flagged: float
    """Probability that it is flagged, in [0, 1]."""
    passed: float
    items: float
    """Items that are asked on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisagreementTest:
    """Whether verdicts differ as seldom as an honest rerun's, or as often as another judge's.

    Hypotheses: the verdicts of an honest rerun differ on ``same`` of the items, those of another
    judge on ``different``.
    """

    same: float = 0.005
    """Share of items, in (0, 1), on which a judge differs from itself."""
    different: float = 0.05
    """Share of items on which a judge differs that must be flagged, above ``same``."""
    most_items: int = 200
    """Items after which it is decided, >= 1."""
    cut: int = 5
    """Differences, >= 1, from which on a judge is flagged after ``most_items``."""
    least_differences: int = 3
    """Differences below which no judge is flagged: a single pair of odd replies says little."""
    log_flagged: float = 6.0
    """Logarithm of the likelihood ratio from which on a judge is flagged at once."""
    log_passed: float = -4.0
    """The same, up to which a judge is passed at once."""

    def __post_init__(self) -> None:
        if not (0 < self.same < self.different < 1 and self.most_items >= 1 and self.cut >= 1):
            raise ValueError(f"expected 0 < same < different < 1 and items, got {self}")

    def state(self, n_items: int, n_different: int) -> State:
        """What is known after so many items.

        Args:
            n_items: Items that were compared, >= 0.
            n_different: Those of them on which the verdicts differ.

        >>> test = DisagreementTest()
        >>> test.state(10, 3), test.state(86, 0), test.state(87, 0), test.state(200, 4)
        ('flagged', 'open', 'passed', 'passed')
        """
        if n_different >= self._flagged_from(n_items):
            return "flagged"
        return "passed" if n_different <= self._passed_up_to(n_items) else "open"

    def of(self, differs: Iterable[bool]) -> tuple[State, int, int]:
        """What is known of items in the order in which they were compared, up to the decision.

        Args:
            differs: Whether the verdicts on each item differ.

        Returns:
            The state, the items up to the decision, and how many of them differ.

        >>> DisagreementTest().of([False] * 200)
        ('passed', 87, 0)
        """
        n_items = n_different = 0
        for is_different in differs:
            n_items += 1
            n_different += is_different
            state = self.state(n_items, n_different)
            if state != "open":
                return state, n_items, n_different
        return "open", n_items, n_different

    @property
    def least_items(self) -> int:
        """Items after which a judge is passed that never differs."""
        return next(n for n in range(1, self.most_items + 1) if self.state(n, 0) == "passed")

    def odds(self, rate: float) -> Odds:
        """What becomes of a judge that differs on a share of the items, each for itself.

        Args:
            rate: That share, in [0, 1].

        >>> [round(DisagreementTest().odds(rate).flagged, 4) for rate in (0.005, 0.05)]
        [0.0037, 0.9647]
        """
        open_paths, flagged, passed, items = {0: 1.0}, 0.0, 0.0, 0.0
        for n_items in range(1, self.most_items + 1):
            after: dict[int, float] = {}
            for n_different, share in open_paths.items():
                after[n_different] = after.get(n_different, 0.0) + share * (1 - rate)
                after[n_different + 1] = after.get(n_different + 1, 0.0) + share * rate
            open_paths = {}
            for n_different, share in after.items():
                state = self.state(n_items, n_different)
                if state == "open":
                    open_paths[n_different] = share
                    continue
                items += share * n_items
                flagged += share * (state == "flagged")
                passed += share * (state == "passed")
        return Odds(flagged=flagged, passed=passed, items=items)

    def _flagged_from(self, n_items: int) -> int:
        if n_items >= self.most_items:
            return self.cut
        up, down = _steps(self.same, self.different)
        n_different = self.least_differences
        while n_different * up + (n_items - n_different) * down < self.log_flagged:
            n_different += 1
        return n_different

    def _passed_up_to(self, n_items: int) -> int:
        """Most differences with which a judge is passed; below 0 where it cannot be yet."""
        if n_items >= self.most_items:
            return self.cut - 1
        up, down = _steps(self.same, self.different)
        n_different = -1
        while (n_different + 1) * up + (n_items - n_different - 1) * down <= self.log_passed:
            n_different += 1
        return n_different


@cache
def _steps(same: float, different: float) -> tuple[float, float]:
    """What an item adds to the logarithm where the verdicts differ, and where they do not."""
    return log(different / same), log((1 - different) / (1 - same))


DISAGREEMENT_TEST: Final = DisagreementTest()
"""Flags 96.5% of judges that differ on 5% of the items and 0.4% of those that differ on 0.5% (5% of
those that differ on 1%), within 200 items; passes a judge that never differs after 87."""
