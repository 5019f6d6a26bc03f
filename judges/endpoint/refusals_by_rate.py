"""Which share of requests is refused at which rate: what of it is noise, and what a limit.

Noise refuses the same share at any rate, the *base*; a limit refuses more above some rate. All that
was sent lately is counted by the rate at which it went out. Of all rates that may be the limit, the
likeliest is taken: below it one share is refused, above it what goes beyond it, or a larger share
where that is clearly likelier. Where no limit is likelier than one share at all rates, it is noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, floor, log
from typing import Final

_WIDTH: Final = log(1.02)
"""Rates within 2% of each other are counted together."""
_FEW: Final = 8.0
"""Least requests that tell the base."""
_SLACK: Final = 1.0
"""Limits that are nearly as likely as the likeliest: the highest of them is taken."""
_CLEAR: Final = 3.0
"""A free share above the limit must make what was seen so many powers of e likelier."""


class RefusalsByRate:
    """Requests sent and refused lately, by the rate at which they went out."""

    def __init__(self) -> None:
        self._bins: dict[int, list[float]] = {}
        """Requests sent and refused, by the logarithm of their rate."""
        self._n_sent = 0.0

    def clear(self) -> None:
        """Forget all: something has changed."""
        self._bins.clear()
        self._n_sent = 0.0

    def add(self, rate: float, *, n_sent: float = 0.0, n_refused: float = 0.0) -> None:
        """Count what was sent, or refused, while ``rate`` requests a second went out."""
        counts = self._bins.setdefault(floor(log(rate) / _WIDTH), [0.0, 0.0])
        counts[0] += n_sent
        counts[1] += n_refused
        self._n_sent += n_sent

    def forget(self, most: float) -> None:
        """Let what is older count less: not much more than ``most`` requests in all."""
        if self._n_sent <= most:
            return
        self._n_sent /= 2
        halves = {key: [n / 2, r / 2] for key, (n, r) in self._bins.items() if n > 1.0}
        self._bins = halves

    def beneath_limit(self) -> tuple[float, float]:
        """Requests sent below the likeliest limit, or all if there is none, and refused of them."""
        bins = sorted(self._bins.items())
        counts = [(exp(key * _WIDTH), n, refused) for key, (n, refused) in bins]
        n_all = sum(n for _, n, _ in counts)
        refused_all = sum(refused for *_, refused in counts)
        fits = [(_likelihood(n_all, refused_all), (n_all, refused_all))]
        n_sent = n_refused = 0.0
        for index, (_, n, refused) in enumerate(counts[:-1]):
            n_sent, n_refused = n_sent + n, n_refused + refused
            if n_sent >= _FEW:
                above = _likelihood_above(1.0 - n_refused / n_sent, counts[index + 1 :])
                fits.append((_likelihood(n_sent, n_refused) + above, (n_sent, n_refused)))
        best = max(likelihood for likelihood, _ in fits)
        return max(counts for likelihood, counts in fits if likelihood >= best - _SLACK)


def _likelihood_above(taken: float, counts: Sequence[tuple[float, float, float]]) -> float:
    """Logarithm of the likelihood of what was refused above a limit.

    Args:
        taken: Share that is taken below it.
        counts: Rates above it, and what was sent and refused at each; the first is the limit.
    """
    # What is taken a second stays the same: a bucket that lets a burst through.
    limit = counts[0][0]
    smooth = sum(_likelihood(n, refused, 1.0 - taken * limit / rate) for rate, n, refused in counts)
    # Or some larger share, whatever the rate: a bucket of one refuses half at once.
    n_sent, n_refused = sum(n for _, n, _ in counts), sum(refused for *_, refused in counts)
    if n_refused <= (1.0 - taken) * n_sent:
        return smooth
    return max(smooth, _likelihood(n_sent, n_refused) - _CLEAR)


def _likelihood(n_sent: float, n_refused: float, share: float | None = None) -> float:
    """Logarithm of the likelihood of a share, by default of the likeliest one."""
    n_taken = max(0.0, n_sent - n_refused)
    share = n_refused / max(n_sent, n_refused, 1e-9) if share is None else share
    share = min(1.0 - 1e-6, max(1e-6, share))
    return n_refused * log(share) + n_taken * log(1.0 - share)
