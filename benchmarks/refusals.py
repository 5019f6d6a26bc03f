"""Measures what refused requests cost: refusals at random, limits, and both at once.

Requests are sent by the judge engine to ``judge_server.py`` in a thread of this process; limits of
few requests a minute, which take long to find, are played by :class:`Pacing` on a simulated clock.

    python benchmarks/refusals.py                # everything, some four minutes
    python benchmarks/refusals.py --calls 1000   # the same with fewer calls

A row's ideal is the same run without refusals, as measured by the first row, plus the requests that
are repeated; or the limit, less what is refused at random. The first third of a run at a limit, in
which the limit is found, is left out; of a simulated one, the first ten minutes are.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from pathlib import Path

from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.judges.endpoint.chain import Ask, Chain
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.outcome import Asked
from lmms_eval_captions.judges.endpoint.pacing import Pacing
from lmms_eval_captions.judges.endpoint.request import Reply, Request

MIX = ("429",) * 10 + ("500",) * 5 + ("nonsense",) * 2 + ("drop",)
"""Faults of 18 in 100 requests: 10% are refused, 5% fail, 2% are unreadable, 1% are dropped."""
LATENCY_S = 0.02
IN_FLIGHT = 64
LIMITED_S = 60.0
"""Seconds that a run at a limit takes."""
SIMULATED_S = 3600.0
SIMULATED_LATENCY_S = 0.2


@dataclass(frozen=True)
class Row:
    """One run, measured."""

    name: str
    seconds: float
    n_answered: int
    n_sent: int
    n_refused: int
    n_unscored: int = 0

    @property
    def goodput(self) -> float:
        """Requests answered a second."""
        return self.n_answered / self.seconds

    def text(self, ideal: float) -> str:
        """A line of the table; ``ideal`` is in answers a second."""
        refused = self.n_refused / max(1, self.n_sent)
        return (
            f"| {self.name} | {self.seconds:,.1f} | {self.n_answered:,} | {self.goodput:,.2f} "
            f"| {self.goodput / ideal:.0%} | {refused:.1%} | {self.n_unscored} |"
        )


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    print(
        f"{LATENCY_S * 1e3:.0f} ms per reply, {IN_FLIGHT} in flight\n\n"
        "| refused | seconds | answered | a second | of the ideal | refused | unscored |\n"
        "|---|---|---|---|---|---|---|",
        flush=True,
    )
    fastest = 0.0
    for share in (0.0, 0.01, 0.05, 0.1, 0.3):
        row = _run(f"{share:.0%} at random", arguments.calls, ("429",), share)
        fastest = fastest or row.goodput
        print(row.text(fastest * (1.0 - share)), flush=True)
    row = _run("10% of 429, 5% of 500, 2% unreadable, 1% dropped", arguments.calls, MIX, 0.18)
    print(row.text(fastest * 0.82), flush=True)
    for limit in (100.0, 10.0):
        for share in (0.0, 0.1):
            row = _run_at_limit(limit, share)
            print(row.text(limit * (1.0 - share)), flush=True)
    for limit in (1.0, 10 / 60):
        for share in (0.0, 0.1):
            print(_simulate(limit, share).text(limit * (1.0 - share)), flush=True)


def _run(name: str, n_calls: int, faults: tuple[str, ...], share: float) -> Row:
    """Ask so many questions of a server that fails at random."""
    behaviour = Behaviour(latency_s=LATENCY_S, faults=faults, fault_rate=share, max_faults=10**9)
    with tempfile.TemporaryDirectory() as folder, JudgeServer(behaviour) as server:
        config = EngineConfig((server.url,), Path(folder), concurrency=IN_FLIGHT)
        with Engine(config) as engine:
            started_s = time.monotonic()
            asked = engine.submit([_chain(index) for index in range(n_calls)]).result()
            seconds = time.monotonic() - started_s
            meter = engine.meter
            n_sent = server.counts.n_requests
    n_unscored = sum(outcome.reason is not None for outcome in asked)
    return Row(name, seconds, meter.n_calls, n_sent, meter.n_rate_limited, n_unscored)


def _run_at_limit(limit: float, share: float) -> Row:
    """Ask without end of a server with a limit, and count in the last two thirds of the time."""
    behaviour = Behaviour(
        latency_s=LATENCY_S, rate=limit, faults=("429",), fault_rate=share, max_faults=10**9
    )
    with tempfile.TemporaryDirectory() as folder, JudgeServer(behaviour) as server:
        config = EngineConfig((server.url,), Path(folder), concurrency=IN_FLIGHT)
        with Engine(config) as engine:
            engine.submit([_chain(index) for index in range(int(2 * limit * LIMITED_S))])
            time.sleep(LIMITED_S / 3)
            first = _counts(engine, server)
            time.sleep(LIMITED_S * 2 / 3)
            last = _counts(engine, server)
    counts = [end - start for start, end in zip(first, last, strict=True)]
    return Row(_name(limit, share), LIMITED_S * 2 / 3, *counts)


def _counts(engine: Engine, server: JudgeServer) -> tuple[int, int, int]:
    return engine.meter.n_calls, server.counts.n_requests, engine.meter.n_rate_limited


def _simulate(limit: float, share: float) -> Row:
    """The same on a simulated clock: a bucket of one request, and refusals that come at once."""
    pacing, rng = Pacing(), random.Random(0)
    now_s = filled_s = 0.0
    tokens = 1.0
    replies: list[float] = []
    n_answered = n_sent = n_refused = 0
    from_s, end_s = 600.0, 600.0 + SIMULATED_S
    while now_s < end_s:
        wake_s = inf
        while len(replies) < IN_FLIGHT and wake_s == inf:
            if not pacing.take(now_s):
                wake_s = now_s + pacing.wait_s()
                continue
            n_sent += now_s >= from_s
            tokens = min(1.0, tokens + (now_s - filled_s) * limit)
            filled_s = now_s
            is_taken = tokens >= 1.0
            tokens -= is_taken
            if is_taken and rng.random() >= share:
                heappush(replies, now_s + SIMULATED_LATENCY_S)
            else:
                n_refused += now_s >= from_s
                pacing.on_rate_limit(now_s)
        now_s = min(wake_s, replies[0] if replies else inf)
        while replies and replies[0] <= now_s:
            n_answered += now_s >= from_s
            heappop(replies)
    return Row(f"{_name(limit, share)}, simulated", SIMULATED_S, n_answered, n_sent, n_refused)


def _name(limit: float, share: float) -> str:
    words = f"above {limit:g} a second" if limit >= 1.0 else f"above {60 * limit:g} a minute"
    return f"{words} and {share:.0%} at random" if share else words


def _chain(index: int) -> Chain[Asked[str]]:
    async def run(ask: Ask) -> Asked[str]:
        request = Request(
            protocol="refusals:1",
            model="benchmark",
            messages=[{"role": "user", "content": f"Question {index}"}],
            params={"temperature": 0.0, "max_tokens": 8},
            seed=0,
            timeout_s=30.0,
            stand_in=lambda: "",
        )
        return await ask(request, _read)

    return run


def _read(reply: Reply) -> str | None:
    return reply.text if reply.text.startswith("Answer ") else None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what refused requests cost.")
    parser.add_argument("--calls", type=int, default=5700, help="questions of each run")
    return parser.parse_args()


if __name__ == "__main__":
    main()
