"""Measures what refused requests cost: refusals at random, limits, and both at once.

Requests are sent by the judge engine to ``judge_server.py`` in a thread of this process; with
``--simulated`` by :class:`Pace` on a simulated clock, which depends on no machine, over many
seeds: medians, and the worst.

    python benchmarks/refusals.py                # over the wire, some six minutes
    python benchmarks/refusals.py --calls 1000   # the same with fewer calls
    python benchmarks/refusals.py --simulated    # on a clock of its own, some four minutes

A row's ideal is the same run without refusals, plus the requests that are repeated; or the limit,
less what is refused at random. Of a run at a limit the time in which the limit is found is left
out: the first third over the wire, the first minute of a simulated one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import _support  # noqa: F401 - an import path
from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Chain, Reply, Request
from simulated_limits import Endpoint, Headers, Limit, Simulation, Span

MIX = ("429",) * 10 + ("500",) * 5 + ("nonsense",) * 2 + ("drop",)
"""Faults of 18 in 100 requests: 10% are refused, 5% fail, 2% are unreadable, 1% are dropped."""
LATENCY_S = 0.02
IN_FLIGHT = 64
LIMITED_S = 60.0
"""Seconds that a run at a limit takes."""
SHARES = (0.01, 0.05, 0.1, 0.3)
"""Shares of requests that are refused at random."""
RATES = (100.0, 10.0, 1.0, 10 / 60)
"""Requests a second that limits allow."""
TOLD_RATES = (500 / 60, 10 / 60)
FINDING_S = 60.0
OF_NOISE, OF_LIMIT, OF_TOLD = (0.7, 0.01), (0.9, 0.05), (0.95, 0.01)
"""Least share of the ideal, and most that may be refused beyond what is at random."""
HEADERS: tuple[Headers, ...] = ("openai", "anthropic", "seconds")


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
    if arguments.simulated:
        _simulate_all(arguments.seeds)
        return
    print(
        f"{LATENCY_S * 1e3:.0f} ms per reply, {IN_FLIGHT} in flight\n\n"
        "| refused | seconds | answered | a second | of the ideal | refused | unscored |\n"
        "|---|---|---|---|---|---|---|",
        flush=True,
    )
    fastest = 0.0
    for share in (0.0, *SHARES):
        row = _run(f"{share:.0%} at random", arguments.calls, ("429",), share)
        fastest = fastest or row.goodput
        print(row.text(fastest * (1.0 - share)), flush=True)
    row = _run("10% of 429, 5% of 500, 2% unreadable, 1% dropped", arguments.calls, MIX, 0.18)
    print(row.text(fastest * 0.82), flush=True)
    for limit in RATES[:2]:
        for share in (0.0, 0.1):
            row = _run_at_limit(limit, share)
            print(row.text(limit * (1.0 - share)), flush=True)
    for headers in ("openai", "anthropic"):
        for share in (0.0, 0.1):
            row = _run_at_limit(10.0, share, headers)
            print(row.text(10.0 * (1.0 - share)), flush=True)


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
    return Row(name, seconds, meter.n_calls, n_sent, meter.retried["HTTP 429"], n_unscored)


def _run_at_limit(limit: float, share: float, headers: str = "none") -> Row:
    """Ask without end of a server with a limit, and count in the last two thirds of the time."""
    behaviour = Behaviour(
        latency_s=LATENCY_S,
        rate=limit,
        # A provider that tells of its limit counts what comes in a longer time.
        burst_s=0.1 if headers == "none" else 10.0,
        limit_headers=headers,
        faults=("429",),
        fault_rate=share,
        max_faults=10**9,
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
    told = "" if headers == "none" else f", told by headers ({headers})"
    return Row(_name(limit, share) + told, LIMITED_S * 2 / 3, *counts)


def _counts(engine: Engine, server: JudgeServer) -> tuple[int, int, int]:
    return engine.meter.n_calls, server.counts.n_requests, engine.meter.retried["HTTP 429"]


def _simulate_all(n_seeds: int) -> None:
    print(
        f"medians of {n_seeds} seeds, in brackets the worst; {IN_FLIGHT} in flight\n\n"
        "| refused | of the ideal | refused beyond what is at random | both targets held |\n"
        "|---|---|---|---|",
        flush=True,
    )
    for n_calls, latency_s in ((5700, LATENCY_S), (20_000, 0.2)):
        for share in SHARES:
            name = f"{share:.0%} at random, {n_calls:,} calls of {1e3 * latency_s:.0f} ms"
            ends = [_noise(n_calls, latency_s, share, seed) for seed in range(n_seeds)]
            _print(name, ends, OF_NOISE)
    for rate in RATES:
        for share in (0.0, 0.1, 0.3):
            ends = [
                _limit(Limit(rate, max(1.0, rate / 10)), share, seed) for seed in range(n_seeds)
            ]
            _print(_name(rate, share), ends, OF_LIMIT)
    for headers in HEADERS:
        for rate in TOLD_RATES:
            for window_s in (0.0, 60.0):
                _print_told(headers, Limit(rate, 60.0 * rate, window_s), n_seeds)


def _print_told(headers: Headers, limit: Limit, n_seeds: int) -> None:
    kind = "window" if limit.window_s else "bucket"
    for share in (0.0, 0.1):
        ends = [_limit(limit, share, seed, headers) for seed in range(n_seeds)]
        _print(f"{_name(limit.rate, share)}, a {kind} told by headers ({headers})", ends, OF_TOLD)


def _print(name: str, ends: list[tuple[float, float]], targets: tuple[float, float]) -> None:
    """A line of the table, of shares of the ideal and shares refused beyond what is at random."""
    used, refused = zip(*ends, strict=True)
    least, most = targets
    n_held = sum(share >= least and rest <= most for share, rest in ends)
    print(
        f"| {name} | {median(used):.1%} ({min(used):.1%}) "
        f"| {median(refused):.1%} ({max(refused):.1%}) | {n_held} of {len(ends)} |",
        flush=True,
    )


def _noise(n_calls: int, latency_s: float, share: float, seed: int) -> tuple[float, float]:
    """So many calls, of which a share is refused after half the time that an answer takes."""
    endpoint = Endpoint(latency_s=latency_s, refusal_s=latency_s / 2)
    alone = Simulation(endpoint, seed=seed, n_calls=n_calls).run()
    noisy = Endpoint(latency_s=latency_s, refusal_s=latency_s / 2, noise=_always(share))
    span = Simulation(noisy, seed=seed, n_calls=n_calls).run()
    ideal_s = alone.seconds * (1.0 + share / (1.0 - share) / 2)
    return ideal_s / span.seconds, span.refused - share


def _limit(limit: Limit, share: float, seed: int, headers: Headers = "none") -> tuple[float, float]:
    """A limit, from the second minute on: for five minutes, or for an hour where it is slow."""
    endpoint = Endpoint(limit, noise=_always(share), headers=headers)
    simulation = Simulation(endpoint, seed=seed)
    simulation.run(FINDING_S)
    span: Span = simulation.run(300.0 if limit.rate > 5.0 else 3600.0)
    return span.rate / limit.rate / (1.0 - share), span.refused - share


def _always(share: float) -> Callable[[float], float]:
    return lambda _: share


def _name(limit: float, share: float) -> str:
    words = f"above {60 * limit:g} a minute" if limit % 1.0 else f"above {limit:g} a second"
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
    parser.add_argument("--simulated", action="store_true", help="on a simulated clock")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of each simulated row")
    return parser.parse_args()


if __name__ == "__main__":
    main()
