"""What is likely of a limit and of noise, given what was refused at which rate.

Noise refuses the same share of requests at any rate, a limit what goes beyond it; how, depends on
the endpoint. A bucket that lets a burst through takes as many a second however many come. A bucket
of one takes a request only when so much time has passed since the last one that was taken: of
requests that come evenly, a little too fast, it refuses every other one.

So there are three unknowns: the limit, the share that is refused by chance, and which of the two
buckets it is. Each combination of them, on a grid, has its probability (Bayes's rule); what is long
ago counts less.
"""

from __future__ import annotations

from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

_Grid = NDArray[np.float64]

LEAST_RATE: Final = 0.05
MOST_RATE: Final = 40.0
"""Limits, in requests a second, that are told apart."""
_STEP: Final = 0.025
"""They are so far apart, as a share."""
_SHARES: Final = (
    0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.09, 0.11, 0.13, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4,
)  # fmt: skip
"""Shares that noise may refuse."""
_QUIET: Final = 0.3
"""Probability, before anything was seen, that there is no noise."""
_OF_ONE: Final = 0.3
"""Probability, before anything was seen, of a bucket of one."""
_FADING: Final = 1.0 / 1000
"""What each request takes off the weight of those before it."""
_LEAST_CHANCE: Final = 0.002
"""Probability that a request is taken, or refused, whatever is believed."""


class LimitBelief:
    """The probabilities; pure arithmetic on what it is told."""

    def __init__(self) -> None:
        n_limits = round(log(MOST_RATE / LEAST_RATE) / _STEP) + 1
        self._limits: _Grid = LEAST_RATE * np.exp(_STEP * np.arange(n_limits))
        self._free: _Grid = 1.0 - np.array(_SHARES)
        """Share of requests that noise leaves."""
        noise = np.full(len(_SHARES), (1.0 - _QUIET) / (len(_SHARES) - 1))
        noise[0] = _QUIET
        bucket = np.array([1.0 - _OF_ONE, _OF_ONE])
        self._prior: _Grid = np.log(noise[:, None] * bucket)
        self._evidence: _Grid = np.zeros((n_limits, len(_SHARES), len(bucket)))
        self._weights: _Grid | None = None
        """The probabilities, where nothing was told since they were last needed."""
        self._latest: tuple[float, tuple[_Grid, _Grid]] | None = None
        """The latest rate that was told of, and what :meth:`_logs` said of it."""
        self._taken_at: _Grid = self._shares_taken(self._limits).reshape(n_limits, -1)
        """Shares that each limit and bucket takes, by rate on the same grid."""

    def send(self, rate: float) -> None:
        """One request went out, at so many a second; taken to be answered until it is refused."""
        self._evidence *= 1.0 - _FADING
        self._evidence += self._logs(rate)[0]
        self._weights = None

    def refuse(self, rate: float) -> None:
        """One that went out at so many a second was refused."""
        taken, refused = self._logs(rate)
        self._evidence += refused - taken
        self._weights = None

    def refused_at(self, rate: float) -> float:
        """Probability that a request is refused at a rate."""
        return float(1.0 - (self._probabilities() * self._chances(rate)).sum())

    def noise(self) -> float:
        """Share of requests that is refused at any rate, as far as is known."""
        return float(1.0 - (self._probabilities().sum(axis=(0, 2)) * self._free).sum())

    def best_rate(self) -> float:
        """Rate, in requests a second, with most answers, less what is refused because of it."""
        free = np.tensordot(self._free, self._probabilities(), axes=(0, 1))
        answered = self._taken_at @ free.ravel()
        return float(self._limits[np.argmax(self._limits * (2.0 * answered - free.sum()))])

    def limit_at(self, share: float) -> float:
        """Limit below which the true one is with a probability of ``share``, in [0, 1)."""
        below = np.cumsum(self._probabilities().sum(axis=(1, 2)))
        index = int(np.searchsorted(below, share))
        return float(self._limits[min(index, len(self._limits) - 1)])

    def _probabilities(self) -> _Grid:
        """Of each limit, share of noise and bucket."""
        if self._weights is None:
            likelihoods = self._evidence + self._prior
            self._weights = np.exp(likelihoods - likelihoods.max())
            self._weights /= self._weights.sum()
        return self._weights

    def _logs(self, rate: float) -> tuple[_Grid, _Grid]:
        """Logarithms of the chances that a request at a rate is taken, and refused."""
        if self._latest is None or self._latest[0] != rate:
            taken = self._chances(rate)
            self._latest = (rate, (np.log(taken), np.log(1.0 - taken)))
        return self._latest[1]

    def _chances(self, rate: float) -> _Grid:
        """Probability that a request at a rate is taken, by limit, share of noise and bucket."""
        taken = self._shares_taken(np.array([rate]))[0][:, None, :] * self._free[:, None]
        chances: _Grid = np.clip(taken, _LEAST_CHANCE, 1.0 - _LEAST_CHANCE)
        return chances

    def _shares_taken(self, rates: _Grid) -> _Grid:
        """Share of requests that a limit takes, by rate, limit and bucket."""
        excess = rates[:, None] / self._limits
        return np.stack([np.minimum(1.0, 1.0 / excess), 1.0 / np.ceil(excess - 1e-9)], axis=2)
