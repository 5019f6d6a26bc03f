"""A seeded campaign of faults against the judge engine: kills, server faults, full disks, restarts.

Each scenario judges some hundred questions of one of the five benchmarks in one to three processes
that share a store, while the server misbehaves, its judge says nothing or nonsense, and the
processes are killed, and starts them again until they finish. Then it checks:

- the verdicts are those that the judge was told to give, every one of them, worked out without
  reading a reply;
- in every start that ended by itself, what is lost is what failed, each with the true reason;
- nothing that was answered is asked again, beyond what was in flight at a kill or not saved;
- one more start sends nothing (but the requests of VCapsBench that a content filter refused and
  that the others outvoted).

    python benchmarks/faults.py --scenarios 200 --seed 0
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, Literal

from loguru import logger

import _support  # noqa: F401 - an import path
from judge_server import Behaviour, JudgeServer, Say, identity_of, last_text
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.limits import Flight
from lmms_eval_captions.judges.endpoint.request import Chain, Reply, Request
from lmms_eval_captions.judges.endpoint.store import ReplyStore, slug
from lmms_eval_captions.judges.errors import JudgeUnavailableError
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from told_judge import FREE_TEXT, N_ASKS, Key, Told, cut_reply, key_of, majority
from told_questions import MODEL, N_CALLS, chain, expected, shown

PASSING_FAULTS = ("500", "503", "drop", "cut", "garbage", "hang")
SPOILT_REPLIES = ("empty", "nonsense", "length", "reasoning", "withheld", "filter")
"""Replies in place of a verdict: nothing, something else, a start that is cut
before the verdict or in the reasoning, and what a content filter leaves of it (200 or 400)."""
REASONS: Final = (
    "content filter",
    "no reply from",
    "told to answer",
    "gave no reply to any request",
    "could not be saved",
    "cannot write",
)
"""Words of every reason that a question may be lost for; the first two wherever nothing else is
going on (a loaded machine lets requests run into their time-out)."""
MOST_STARTS = 30
_QUIET_LOOKS: Final = 10
"""Looks, 20 ms apart, at which a server must have nothing to do: on a loaded machine it is late."""
_LOOK_MS: Final = 2
"""Interval of the check for the next kill."""


@dataclass(frozen=True)
class Scenario:
    """Planned faults."""

    seed: int
    benchmark: str
    n_processes: int
    n_questions: int
    """Questions of each process."""
    concurrency: int
    latency_s: float
    faults: tuple[str, ...]
    fault_rate: float
    kills: tuple[float, ...]
    """Shares of all calls answered at which every process is killed."""
    disk_bytes: int | None
    """Size at which files stop growing in the first start, or ``None``."""
    outage: int | None
    """Status that the server answers for a while in the first start, or ``None``."""
    spoilt: tuple[str, ...] = ()
    """Replies to mix in, of ``SPOILT_REPLIES``, at most two for a request."""
    spoilt_rate: float = 0.0
    logprobs: str = "none"
    """Reply of the server to a request for log-probabilities: see :class:`Behaviour`."""

    @property
    def config(self) -> JudgeConfig:
        """The judge; only what hangs should run into the time-out, also on a loaded machine."""
        return JudgeConfig(model=MODEL, timeout_s=1.5 if "hang" in self.faults else 15.0)

    def chain(self, process: int, index: int) -> Chain[Any]:
        """The requests of one question of a process."""
        setting: Literal["combined", "ref_only"] = "combined" if self.seed % 2 else "ref_only"
        return chain(self.benchmark, process, index, self.config, setting=setting)

    def expected(self, process: int, index: int) -> str:
        """Return the expected verdict."""
        has_logprobs = self.logprobs == "whole"
        told = Told(self.seed)
        return expected(told, self.benchmark, process, index, has_logprobs=has_logprobs)

    @classmethod
    def draw(cls, seed: int) -> Scenario:
        """The scenario of a seed."""
        rng = random.Random(seed)
        benchmark = rng.choice(list(N_CALLS))
        storm = rng.random() < 0.05
        faults = ("429",) if storm else tuple(rng.sample(PASSING_FAULTS, rng.randint(0, 3)))
        latency_s = rng.choice([0.0, 0.002, 0.01])
        kills = sorted(rng.uniform(0.05, 0.9) for _ in range(rng.choice([0, 1, 1, 2, 3])))
        return cls(
            seed=seed,
            benchmark=benchmark,
            n_processes=rng.choice([1, 1, 2, 3]),
            n_questions=(20 if storm else rng.randint(30, 110)) // N_CALLS[benchmark],
            # One by one, time-outs would take most of the campaign's time.
            concurrency=rng.choice([4, 16, 64] if "hang" in faults else [1, 4, 16, 64]),
            latency_s=latency_s,
            faults=faults,
            fault_rate=rng.choice([0.02, 0.1, 0.2]),
            kills=tuple(kills),
            disk_bytes=rng.randint(200, 6000) if rng.random() < 0.2 else None,
            outage=rng.choice([401, 404, 500, 503]) if rng.random() < 0.15 else None,
            spoilt=tuple(rng.sample(SPOILT_REPLIES, rng.choice([0, 0, 1, 2, 6]))),
            spoilt_rate=rng.choice([0.02, 0.1, 0.3]),
            logprobs=rng.choice(["whole", "whole", "none", "refuse"]),
        )


@dataclass
class Outcome:
    """Result, with every failed check."""

    scenario: Scenario
    n_starts: int = 0
    n_calls: int = 0
    n_repeated: int = 0
    n_spoilt: int = 0
    """Replies without a verdict."""
    n_excused: int = 0
    """Requests that may have been repeated: in flight at a kill, answered and not saved, or
    answered when their time-out was over."""
    failures: list[str] = field(default_factory=list)


class Judge:
    """The server's script: what it is told, with replies spoilt at random.

    Args:
        scenario: Says what is spoilt, and how often.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.told = Told(scenario.seed)
        self.is_calm = False
        """Whether nothing is spoilt any more."""
        self.refused: set[Key] = set()
        """Requests that the content filter refused and that were not answered since."""
        self.refused_now: set[Key] = set()
        """Those that it refused since the latest start."""
        self.n_spoilt: Counter[Key] = Counter()
        self._scenario = scenario
        self._random = random.Random(scenario.seed)

    def __call__(self, payload: dict[str, Any]) -> Say | str:
        """Return the reply to a request."""
        key = key_of(payload)
        spoilt = self._spoilt(key)
        if spoilt == "filter":
            self.refused.add(key)
            self.refused_now.add(key)
            return "filter"
        self.refused.discard(key)
        # A refusal that came after its time-out was not seen, and the request sent again.
        self.refused_now.discard(key)
        if not self.told.is_consistent(key, last_text(payload)):
            return Say("This is not what the first step said.")
        return {
            "empty": Say(" \n"),
            "nonsense": Say("<think>Hm.</think>" if key.step in FREE_TEXT else "What weather!"),
            "length": Say("" if key.step in FREE_TEXT else cut_reply(key.step), "length"),
            "reasoning": Say("<think>It could be 2, yes, or", "length"),
            "withheld": Say("", "content_filter"),
        }.get(spoilt, Say(self.told.text(key)))

    def _spoilt(self, key: Key) -> str:
        scenario = self._scenario
        if self.is_calm or not scenario.spoilt or self.n_spoilt[key] >= 2:
            return ""
        if self._random.random() >= scenario.spoilt_rate:
            return ""
        self.n_spoilt[key] += 1
        return self._random.choice(scenario.spoilt)


def run_scenario(scenario: Scenario) -> Outcome:
    """Play one scenario to its end and check it."""
    outcome = Outcome(scenario)
    behaviour = Behaviour(
        latency_s=scenario.latency_s,
        faults=scenario.faults,
        fault_rate=scenario.fault_rate,
        max_faults=2,
        logprobs=scenario.logprobs,
    )
    with tempfile.TemporaryDirectory() as folder, JudgeServer(behaviour) as server:
        server.script = judge = Judge(scenario)
        play = _Play(scenario, server, judge, Path(folder), outcome)
        kills = list(scenario.kills)
        verdicts = None
        while verdicts is None and outcome.n_starts < MOST_STARTS:
            verdicts = play.start(kills)
        outcome.n_calls = server.counts.n_requests
        outcome.n_repeated = server.counts.n_repeated
        outcome.n_spoilt = judge.n_spoilt.total()
        play.check(verdicts)
    return outcome


@dataclass
class _Play:
    """A scenario that is being played."""

    scenario: Scenario
    server: JudgeServer
    judge: Judge
    folder: Path
    outcome: Outcome

    def check(self, verdicts: list[list[str]] | None) -> None:
        """Check what the scenario ended with, and that it is finished."""
        outcome, server, scenario = self.outcome, self.server, self.scenario
        if verdicts is None:
            outcome.failures.append(f"not finished after {outcome.n_starts} starts")
            return
        expected = [
            [scenario.expected(p, i) for i in range(scenario.n_questions)]
            for p in range(scenario.n_processes)
        ]
        if verdicts != expected:
            outcome.failures.append("verdicts differ from those that the judge was told to give")
        if outcome.n_repeated > outcome.n_excused:
            outcome.failures.append(
                f"{outcome.n_repeated} answered requests were sent again, "
                f"{outcome.n_excused} may be"
            )
        server.behaviour = Behaviour(logprobs=_calm_logprobs(scenario))
        self.judge.is_calm = True
        # An outvoted ask that was refused is asked once more, and then no more.
        for n_missing in (len(self.judge.refused), 0) if self.judge.refused else (0,):
            n_before = server.counts.n_requests
            again = self.start([])
            if again != expected or server.counts.n_requests - n_before != n_missing:
                outcome.failures.append("a finished run started again sent requests")

    def start(self, kills: list[float]) -> list[list[str]] | None:
        """Start all processes once; their verdicts, ``None`` where one was killed or failed."""
        scenario, server, outcome = self.scenario, self.server, self.outcome
        is_first = outcome.n_starts == 0
        outcome.n_starts += 1
        self.judge.refused_now.clear()
        disk_bytes = scenario.disk_bytes if is_first else None
        outage = scenario.outage if is_first else None
        results = [self.folder / f"result-{p}" for p in range(scenario.n_processes)]
        for path in results:
            path.unlink(missing_ok=True)
        children = [
            _fork(partial(_judge, scenario, p, server.url, self.folder, results[p], disk_bytes))
            for p in range(scenario.n_processes)
        ]
        was_killed = self._wait(set(children), kills, outage)
        server.behaviour.status = 200
        if was_killed or disk_bytes is not None:
            _settle(server)
            # Answered while on the way back, or not saved; never more than were on their way.
            n_unsaved = len(server.counts.answered) - _n_stored(self.folder)
            in_flight = scenario.n_processes * scenario.concurrency
            outcome.n_excused += min(in_flight, max(0, n_unsaved))
        # A reply that came after its time-out was answered, and is asked for again. What hung when
        # it was killed had no time-out: it must not be set off against one of a later start.
        outcome.n_excused += (_resent(self.folder) - server.counts.hung).total()
        server.counts.hung.clear()
        if not all(path.exists() for path in results):
            return None
        judged: list[list[tuple[str | None, str | None]]] = [
            json.loads(path.read_text()) for path in results
        ]
        self._check_lost(judged, disturbed=bool(was_killed or disk_bytes or outage))
        verdicts = [[str(verdict) for verdict, _ in process] for process in judged]
        return None if any("None" in process for process in verdicts) else verdicts

    def _wait(self, running: set[int], kills: list[float], outage: int | None) -> bool:
        """Wait for the processes while they are killed and the server is out; if any was killed."""
        server, scenario = self.server, self.scenario
        n_all_calls = N_CALLS[scenario.benchmark] * scenario.n_processes * scenario.n_questions
        outage_s = time.monotonic() + 0.05
        was_killed = False
        ends = select.poll()
        children = {os.pidfd_open(child): child for child in running}
        for descriptor in children:
            ends.register(descriptor, select.POLLIN)
        while children:
            # Where nothing is left to be done to them, their ends are all there is to wait for.
            for descriptor, _ in ends.poll(_LOOK_MS if kills or outage is not None else None):
                ends.unregister(descriptor)
                os.waitpid(children.pop(descriptor), 0)
                os.close(descriptor)
            if kills and len(server.counts.answered) >= kills[0] * n_all_calls:
                kills.pop(0)
                for child in children.values():
                    os.kill(child, signal.SIGKILL)
                was_killed = True
            if outage is not None and time.monotonic() > outage_s:
                server.behaviour.status, outage = outage, None
        return was_killed

    def _check_lost(
        self, judged: list[list[tuple[str | None, str | None]]], *, disturbed: bool
    ) -> None:
        """Check that only refused questions are lost, each with a true reason."""
        allowed = REASONS if disturbed else REASONS[:2]
        for p, process in enumerate(judged):
            for i, (verdict, reason) in enumerate(process):
                if (verdict is None) != (reason is not None):
                    self.outcome.failures.append(f"verdict {verdict!r} with reason {reason!r}")
                elif reason is not None and not any(words in reason for words in allowed):
                    self.outcome.failures.append(f"question {p}-{i} is lost for: {reason}")
                elif not disturbed and self._must_be_lost(p, i) and verdict is not None:
                    self.outcome.failures.append(f"question {p}-{i} was refused and has a verdict")
                elif "content filter" in str(reason) and not self._must_be_lost(p, i):
                    self.outcome.failures.append(f"question {p}-{i} was not refused: {reason}")

    def _must_be_lost(self, p: int, i: int) -> bool:
        """Return True if the requests refused in this start cost the question its verdict."""
        refused = {key for key in self.judge.refused_now if key[:2] == (p, i)}
        if self.scenario.benchmark != "vcapsbench" or not refused:
            return bool(refused)
        asks = [Key(p, i, seed, "vcapsbench_answer") for seed in range(N_ASKS)]
        told = self.judge.told
        return majority([None if ask in refused else told.ask(*ask[:3]) for ask in asks]) is None


def _judge(
    scenario: Scenario, process: int, url: str, folder: Path, result: Path, disk_bytes: int | None
) -> None:
    """Judge a process's share, and write its verdicts."""
    if disk_bytes is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (disk_bytes, hard))
    config = EngineConfig(
        urls=(url,),
        store=folder / "replies",
        concurrency=scenario.concurrency,
        backoff_s=0.005,
        max_backoff_s=0.05,
        store_patience_s=0.1,
        n_attempts=5,
        outage_patience_s=0.05,
    )
    with Engine(config) as engine:
        _log_resent(engine, folder)
        chains = [scenario.chain(process, index) for index in range(scenario.n_questions)]
        judgements = engine.submit(chains).result()
    draft = result.with_suffix(".draft")
    draft.write_text(json.dumps([(shown(judgement), judgement.reason) for judgement in judgements]))
    draft.rename(result)


def _log_resent(engine: Engine, folder: Path) -> None:
    """Have each time-out written down at once: it may lead to a second answer to one request.

    A kill leaves what was written.
    """
    fly = engine._asker._fly

    async def noted(request: Request, attempt: int, flight: Flight) -> Reply:
        try:
            return await fly(request, attempt, flight)
        except JudgeUnavailableError as error:
            if error.timed_out:
                with (folder / "resent").open("ab", buffering=0) as stream:
                    stream.write(identity_of(request.body(attempt)))
            raise

    engine._asker._fly = noted  # type: ignore[method-assign] # to listen


def _resent(folder: Path) -> Counter[bytes]:
    """Time-outs of the latest start, by what was asked."""
    log = folder / "resent"
    data = log.read_bytes() if log.exists() else b""
    log.unlink(missing_ok=True)
    return Counter(data[start : start + 16] for start in range(0, len(data), 16))


def _settle(server: JudgeServer) -> None:
    """Wait until the server is done with what killed processes had sent.

    It may not have read all of that yet, so it must have been seen to be done several times.
    """
    n_seen, n_quiet = -1, 0
    while n_quiet < _QUIET_LOOKS:
        is_done = n_seen == server.counts.n_requests and not server.counts.n_in_flight
        n_quiet = n_quiet + 1 if is_done else 0
        n_seen = server.counts.n_requests
        time.sleep(0.02)


def _n_stored(folder: Path) -> int:
    """Replies on disk, those of all processes together."""
    store = ReplyStore(folder / "replies" / slug(MODEL))
    n_stored = len(store)
    store.close()
    return n_stored


def warm_up() -> None:
    """Judge one question of each benchmark here, so that the starts, forks of this, need not.

    What a first judging reads and compiles (prompts, prices, patterns, modules that are imported
    late) is most of the time of a start; each start still makes an engine, and reads the store.
    """
    seeds = {
        (scenario.benchmark, seed % 2): replace(
            scenario, n_processes=1, n_questions=1, disk_bytes=None, logprobs="whole"
        )
        for seed, scenario in enumerate(map(Scenario.draw, range(100)))
    }
    calm = Behaviour(logprobs="whole")
    for scenario in seeds.values():
        with tempfile.TemporaryDirectory() as folder, JudgeServer(calm) as server:
            server.script = Judge(replace(scenario, spoilt=()))
            result = Path(folder) / "result"
            _judge(scenario, 0, server.url, Path(folder), result, None)
    # What is there stays: a look through it would copy its pages in every fork.
    gc.collect()
    gc.freeze()


def _fork(act: partial[None]) -> int:
    """Run in a child process, which has everything imported already."""
    child = os.fork()
    if child:
        return child
    # It lives for a tenth of a second.
    gc.disable()
    try:
        act()
    except OSError:
        pass  # the result does not fit on the full disk either: a restart will write it
    except BaseException:  # noqa: BLE001 - a child must not return into the parent's code
        traceback.print_exc()
    finally:
        os._exit(0)


def _calm_logprobs(scenario: Scenario) -> str:
    """Return a server that refuses nothing and gives no log-probabilities if it refused them."""
    return "none" if scenario.logprobs == "refuse" else scenario.logprobs


def main() -> int:
    """Play the campaign; 0 where every scenario passed."""
    parser = argparse.ArgumentParser(description="Faults against the judge engine.")
    parser.add_argument("--scenarios", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first scenario")
    parser.add_argument("--jobs", type=int, default=8, help="scenarios played at the same time")
    arguments = parser.parse_args()
    logger.remove()
    warm_up()
    started_s = time.monotonic()
    scenarios = map(Scenario.draw, range(arguments.seed, arguments.seed + arguments.scenarios))
    outcomes = []
    # Most of a scenario is waiting.
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("fork")) as pool:
        for outcome in pool.map(run_scenario, scenarios):
            outcomes.append(outcome)
            for failure in outcome.failures:
                print(f"FAILED {failure}: {outcome}", flush=True)
            if len(outcomes) % 50 == 0:
                print(f"{len(outcomes)} played in {time.monotonic() - started_s:.0f} s", flush=True)
    n_passed = sum(not outcome.failures for outcome in outcomes)
    print(
        f"{n_passed} of {len(outcomes)} scenarios passed in {time.monotonic() - started_s:.0f} s: "
        f"{sum(o.n_starts for o in outcomes)} starts, {sum(o.n_calls for o in outcomes):,} calls, "
        f"{sum(len(o.scenario.kills) for o in outcomes)} kills, "
        f"{sum(o.n_spoilt for o in outcomes):,} replies without a verdict, "
        f"{sum(o.n_repeated for o in outcomes)} answered requests sent again of "
        f"{sum(o.n_excused for o in outcomes):,} that were in flight at a kill or unsaved"
    )
    played = Counter(outcome.scenario.benchmark for outcome in outcomes)
    print(", ".join(f"{name} {played[name]}" for name in N_CALLS))
    return 0 if n_passed == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
