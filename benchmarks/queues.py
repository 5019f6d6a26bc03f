"""Measures what the number in flight that the engine finds is worth, on simulated servers.

A server works on so many requests at once (its slots) and queues the rest; a batching one (a GPU)
works on each the slower the more there are. Replies differ in length, and there may be two kinds of
requests, one four times as long. A row compares with the same server and all that may be in flight
from the start, as a client does that has no such limit and sends what timed out again, unchanged:

    python benchmarks/queues.py [--seed 0]

``share`` is work done that counted, of what the server could have done with its slots full and no
start or end (of a free server: with all in flight); ``late`` counts requests that timed out.
It ends with 1 where of the requests to a server that answers each alone within a quarter of the
time-out more than one in twenty times out or one in a hundred is given up on, or where a server
that takes everything is slowed down by more than 5%, or by 15% where it becomes slower by itself.
"""

from __future__ import annotations

import argparse
import heapq
import random
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from lmms_eval_captions.judges.endpoint.load import Flight, Load

TIMEOUT_S = 120.0
MOST = 64
MOST_TIMES = 7.0
"""Time-outs that a request is tried for, as the engine does: one, two and four are seven."""
MOST_LATE = 0.05
MOST_LOST = 0.01
MOST_SLOWER = 0.05
MOST_SLOWER_CHANGING = 0.15


@dataclass(frozen=True)
class Server:
    """How a server answers."""

    name: str
    slots: int
    """Requests that it works on at once."""
    service_s: float
    """Mean time of one that is alone."""
    gain: float = 1.0
    """Work a second with m requests is m to this power, that with one being 1."""
    spread: float = 0.5
    """Standard deviation of the logarithm of the work of a request."""
    kinds: int = 1

    def speed(self, n_working: int) -> float:
        """Work a second on each of so many requests."""
        return float(n_working ** (self.gain - 1.0))

    def best(self, most: int) -> float:
        """Work a second at most."""
        return float(min(self.slots, most) ** self.gain)


SERVERS = (
    *(
        Server(f"{slots} slots", slots, service_s, kinds=kinds)
        for slots in (1, 4, 16)
        for service_s in (0.5, 5.0, 30.0)
        for kinds in (1, 2)
    ),
    Server("one processor, 4 slots", 4, 1.0, gain=0.0),
    Server("one processor, 4 slots", 4, 10.0, gain=0.0),
    Server("one processor, 4 slots", 4, 30.0, gain=0.0),
    Server("one processor, 4 slots", 4, 10.0, gain=0.0, spread=1.0, kinds=2),
    Server("batching", 256, 2.0, gain=0.7),
    Server("batching, 32 slots", 32, 2.0, gain=0.7),
    Server("free", 10**6, 0.2, spread=0.0),
    Server("free", 10**6, 5.0, spread=1.0),
)


@dataclass(frozen=True)
class Provider:
    """A server that takes everything, and is slower or faster for reasons of its own."""

    name: str
    changes: tuple[tuple[float, float], ...]
    """Seconds since the start, and how long replies take on average from then on."""
    rate: float = inf
    """Requests a second that it takes, which are kept to."""
    spread: float = 0.5
    """Standard deviation of the logarithm of how long a reply takes."""

    def latency_s(self, now_s: float, rng: random.Random) -> float:
        """How long a reply to what is sent now takes."""
        mean_s = [mean_s for since_s, mean_s in self.changes if since_s <= now_s][-1]
        return mean_s * rng.lognormvariate(-(self.spread**2) / 2, self.spread)


PROVIDERS = (
    Provider("steady", ((0.0, 2.0),), spread=1.0),
    Provider("slower while the number grows", ((0.0, 2.0), (4.0, 4.0), (10.0, 8.0))),
    Provider("slower later", ((0.0, 2.0), (20.0, 6.0))),
    Provider("slower and faster", tuple((30.0 * i, (1.0, 4.0)[i % 2]) for i in range(100))),
    Provider("10 requests a second, slower later", ((0.0, 1.5), (100.0, 6.0)), rate=10.0),
    Provider(
        "10 requests a second, slower and faster",
        tuple((30.0 * i, (1.0, 4.0)[i % 2]) for i in range(100)),
        rate=10.0,
    ),
)


@dataclass(eq=False)
class _Job:
    work: float
    kind: str
    n_timeouts: int = 0
    tried_s: float = 0.0
    left: float = 0.0
    flight: Flight = field(init=False)


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    seconds: float
    share: float
    n_late: int
    n_lost: int
    """Requests that were given up on."""
    median_in_flight: int


class Unlimited(Load):
    """All that may be in flight at once, and the same time-out each time."""

    def __init__(self, most: int) -> None:
        super().__init__(most, start=most)

    def time_for(self, kind: str, timeout_s: float, n_timeouts: int) -> float:  # noqa: ARG002
        """The time-out."""
        return timeout_s

    def on_reply(self, flight: Flight, now_s: float) -> None:
        """Nothing changes."""

    def on_timeout(self, flight: Flight, now_s: float) -> None:
        """Nothing changes."""


def simulate(
    server: Server, make_load: Callable[[int], Load], *, n: int, most: int = MOST, seed: int = 0
) -> Outcome:
    """Send ``n`` requests to a server whose queue is first come, first served."""
    rng, load, now_s = random.Random(seed), make_load(most), 0.0
    pending = deque(_draw(server, rng) for _ in range(n))
    done_work, n_late, n_lost, levels = 0.0, 0, 0, list[int]()
    under_way: list[_Job] = []
    while pending or under_way:
        while pending and len(under_way) < load.limit:
            job = pending.popleft()
            given_s = load.time_for(job.kind, TIMEOUT_S, job.n_timeouts)
            n_in_flight = len(under_way) + 1
            job.flight = Flight(job.kind, TIMEOUT_S, given_s, now_s, n_in_flight, load.limit)
            job.left = job.work
            under_way.append(job)
            levels.append(len(under_way))
        working = under_way[: server.slots]
        speed = server.speed(len(working))
        first = min(working, key=lambda job: job.left)
        oldest = min(under_way, key=lambda job: job.flight.sent_s + job.flight.given_s)
        answered_s = now_s + first.left / speed
        late_s = oldest.flight.sent_s + oldest.flight.given_s
        is_late = late_s < answered_s
        elapsed_s = max(0.0, min(late_s, answered_s) - now_s)
        now_s += elapsed_s
        for job in working:
            job.left -= elapsed_s * speed
        under_way.remove(oldest if is_late else first)
        if not is_late:
            done_work += first.work
            load.on_reply(first.flight, now_s)
            continue
        n_late += 1
        oldest.n_timeouts += 1
        load.on_timeout(oldest.flight, now_s)
        oldest.tried_s += oldest.flight.given_s
        if oldest.tried_s < MOST_TIMES * TIMEOUT_S:
            pending.append(oldest)
        else:
            n_lost += 1
    share = done_work / now_s / server.best(most) if now_s else 0.0
    return Outcome(now_s, share, n_late, n_lost, sorted(levels)[len(levels) // 2])


def simulate_provider(
    provider: Provider, make_load: Callable[[int], Load], *, n: int, most: int = MOST, seed: int = 0
) -> float:
    """Seconds that ``n`` requests take."""
    rng, load, now_s, next_s, n_sent = random.Random(seed), make_load(most), 0.0, 0.0, 0
    under_way: list[tuple[float, int, Flight]] = []
    while n_sent < n or under_way:
        while n_sent < n and len(under_way) < load.limit and now_s >= next_s:
            flight = Flight("short", TIMEOUT_S, TIMEOUT_S, now_s, len(under_way) + 1, load.limit)
            answered_s = now_s + provider.latency_s(now_s, rng)
            heapq.heappush(under_way, (answered_s, n_sent, flight))
            n_sent += 1
            next_s = max(now_s, next_s) + 1.0 / provider.rate
        is_held_back = n_sent < n and len(under_way) < load.limit
        if is_held_back and (not under_way or next_s < under_way[0][0]):
            now_s = next_s
        else:
            now_s, _, flight = heapq.heappop(under_way)
            load.on_reply(flight, now_s)
    return now_s


def provider_violations(provider: Provider, found_s: float, unlimited_s: float) -> list[str]:
    """What is not kept where a server changes by itself."""
    if found_s <= (1.0 + MOST_SLOWER_CHANGING) * unlimited_s:
        return []
    return [f"{provider.name}: {found_s:.0f} s, {unlimited_s:.0f} s without a limit"]


def violations(server: Server, limited: Outcome, unlimited: Outcome, n: int) -> list[str]:
    """What the module promises, and this run did not keep."""
    broken = []
    longest_s = server.service_s * (4.0 if server.kinds == 2 else 1.0)
    if longest_s <= TIMEOUT_S / 4 and limited.n_late > MOST_LATE * n:
        broken.append(f"{limited.n_late} of {n} requests timed out")
    if longest_s <= TIMEOUT_S / 4 and limited.n_lost > MOST_LOST * n:
        broken.append(f"{limited.n_lost} of {n} requests were given up on")
    if server.slots >= MOST and limited.seconds > (1.0 + MOST_SLOWER) * unlimited.seconds:
        broken.append(f"{limited.seconds:.0f} s, {unlimited.seconds:.0f} s without a limit")
    return [f"{server.name}, {server.service_s:g} s, {server.kinds} kinds: {b}" for b in broken]


def main() -> int:
    """Print a row for every server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("| server | seconds alone | kinds | share | late | lost | median in flight | ", end="")
    print("without: share | late | lost |\n|---|---|---|---|---|---|---|---|---|---|")
    broken: list[str] = []
    for server in SERVERS:
        n = arguments.requests * (10 if server.slots >= MOST else 1)
        limited, unlimited = (
            simulate(server, make, n=n, seed=arguments.seed) for make in (Load, Unlimited)
        )
        broken += violations(server, limited, unlimited, n)
        print(
            f"| {server.name} | {server.service_s:g} | {server.kinds} | {limited.share:.0%} | "
            f"{limited.n_late} | {limited.n_lost} | {limited.median_in_flight} | "
            f"{unlimited.share:.0%} | {unlimited.n_late} | {unlimited.n_lost} |",
            flush=True,
        )
    print("\n| server that changes | seconds | without |\n|---|---|---|")
    for provider in PROVIDERS:
        found_s, unlimited_s = (
            simulate_provider(provider, make, n=10 * arguments.requests, seed=arguments.seed)
            for make in (Load, Unlimited)
        )
        broken += provider_violations(provider, found_s, unlimited_s)
        print(f"| {provider.name} | {found_s:.0f} | {unlimited_s:.0f} |", flush=True)
    for words in broken:
        print(f"VIOLATION {words}")
    return bool(broken)


def _draw(server: Server, rng: random.Random) -> _Job:
    kind = rng.choice(("short", "long")[: server.kinds])
    mean_s = server.service_s * (4.0 if kind == "long" else 1.0)
    work = mean_s * rng.lognormvariate(-(server.spread**2) / 2, server.spread)
    return _Job(max(1e-3, work), kind)


if __name__ == "__main__":
    sys.exit(main())
