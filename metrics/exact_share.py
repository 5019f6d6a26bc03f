"""A share with its exact interval: of so many things, how many are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExactShare:
    """A number of things, of how many, and where the share of all such things may lie.

    >>> share = ExactShare(197, 200)
    >>> f"{share.share:.3f} [{share.low:.3f}, {share.high:.3f}]"
    '0.985 [0.957, 0.997]'
    """

    n: int
    of: int
    level: float = 0.95
    """Share of such intervals that cover at least, in (0, 1)."""

    def __post_init__(self) -> None:
        if not 0 <= self.n <= self.of or not 0 < self.level < 1:
            raise ValueError(f"expected 0 <= n <= of and a level in (0, 1), got {self}")

    @property
    def share(self) -> float:
        """The share itself; ``nan`` of nothing."""
        return self.n / self.of if self.of else float("nan")

    @property
    def low(self) -> float:
        """Lower end of the interval of Clopper and Pearson, in [0, 1]."""
        if self.n == 0:
            return 0.0
        return _beta((1 - self.level) / 2, self.n, self.of - self.n + 1)

    @property
    def high(self) -> float:
        """Upper end of the same."""
        if self.n == self.of:
            return 1.0
        return _beta((1 + self.level) / 2, self.n + 1, self.of - self.n)


def _beta(share: float, a: int, b: int) -> float:
    from scipy.stats import beta

    return float(beta.ppf(share, a, b))
