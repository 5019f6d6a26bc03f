"""Which requests take so much longer than others that a second copy is worth sending."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.load import Flight
    from lmms_eval_captions.judges.endpoint.request import Reply, Request

_N_KNOWN: Final = 512
_N_NEEDED: Final = 64
_FACTOR: Final = 5.0
_LEAST_S: Final = 3.0
_SHARE: Final = 0.01
_FREE: Final = 8


@dataclass(slots=True, eq=False)
class InFlight:
    """A request on its way, and the copies that were sent after it where it is a straggler."""

    request: Request
    attempt: int
    flight: Flight
    latest_s: float
    """When it, or its latest copy, was sent."""
    task: asyncio.Task[object] | None
    copies: list[asyncio.Task[None]] = field(default_factory=list)
    reply: Reply | None = None
    """Reply to the first copy that was answered."""


class Stragglers:
    """Tells when a request is a straggler, from how long the latest replies took.

    A copy may be billed as well, so at most one request in a hundred gets one.
    """

    def __init__(self) -> None:
        self._latencies_s: deque[float] = deque(maxlen=_N_KNOWN)
        self._n_calls = 0
        self._n_copies = 0

    def on_reply(self, latency_s: float) -> None:
        """One request was answered after so long."""
        self._latencies_s.append(latency_s)
        self._n_calls += 1

    def threshold_s(self) -> float | None:
        """Age at which a request is a straggler: five times what 95 in 100 replies take.

        Returns:
            Seconds, at least three; ``None`` while too little is known.

        >>> stragglers = Stragglers()
        >>> for _ in range(100):
        ...     stragglers.on_reply(2.0)
        >>> stragglers.threshold_s()
        10.0
        """
        if len(self._latencies_s) < _N_NEEDED:
            return None
        ordered = sorted(self._latencies_s)
        return max(_LEAST_S, _FACTOR * ordered[int(0.95 * len(ordered))])

    def may_copy(self) -> bool:
        """Whether one more copy is within the bound; counts it if so."""
        if self._n_copies >= _FREE + _SHARE * self._n_calls:
            return False
        self._n_copies += 1
        return True
