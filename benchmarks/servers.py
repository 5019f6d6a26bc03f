"""A seeded campaign of faulty and hostile servers against the judge engine.

Each scenario judges some dozens of questions of one of the five benchmarks, whose verdicts are
fixed beforehand, while the server mixes what :mod:`hostile_answers` holds into its answers. It
checks that

- every question has the verdict that the judge was told to give, or a reason that is true: of what
  the server did to that question, or of what stopped the run;
- no second step is shown the first step of another question, and the store, read back, holds no
  reply under another's key;
- nothing hangs, and the process (client and server are one) never takes much more memory;
- a second run against a server that behaves scores all that is left, sends nothing that was
  answered before, and a third one sends nothing.

    python benchmarks/servers.py --scenarios 150 --seed 0
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loguru import logger

import faults
from hostile_answers import LOSING, PASSING, READ, STOPPING, WORDS, Say, all_of
from judge_server import last_text
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.store.stored_replies import StoredReplies
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from raw_server import Asked, RawServer
from told_judge import Key, Told, key_of
from told_questions import MODEL, N_CALLS, shown

TIMEOUT_S: Final = 0.7
MOST_S: Final = 60.0
"""Seconds that a run may take; 30 to 100 times what it takes."""
MOST_GROWTH_BYTES: Final = 400 * 2**20
"""Memory that a scenario may take: 16 answers of 16 MB under way at once, and what they come in."""
_MOST_TIMES: Final = 3
"""Hostile answers to one request at most, unless it is to get no other."""
_SLOW: Final = {"late", "hang", "slow-loris", "slow-headers", "gzip-bomb"}
_QUICK: Final = sorted(set(PASSING) - _SLOW)


@dataclass(frozen=True)
class Scenario(faults.Scenario):
    """What is going to happen."""

    hostile: tuple[str, ...] = ()
    """Names of the answers to mix in."""
    hostile_rate: float = 0.0
    hopeless_rate: float = 0.0
    """Share of requests that get no answer that can be read, ever."""
    stop: str | None = None
    """Name of the answer that stops judging, if one does."""

    @property
    def config(self) -> JudgeConfig:
        """The judge, which is not waited for long."""
        return JudgeConfig(model=MODEL, timeout_s=TIMEOUT_S)

    @classmethod
    def draw(cls, seed: int) -> Scenario:
        """The scenario of a seed; the benchmarks take turns."""
        rng = random.Random(seed)
        benchmark = list(N_CALLS)[seed % len(N_CALLS)]
        passing = rng.sample(sorted(PASSING), rng.randint(2, 6))
        return cls(
            seed=seed,
            benchmark=benchmark,
            n_processes=1,
            n_questions=rng.randint(30, 60) // N_CALLS[benchmark],
            concurrency=rng.choice([4, 8, 16]),
            latency_s=0.0,
            faults=(),
            fault_rate=0.0,
            kills=(),
            disk_bytes=None,
            outage=None,
            hostile=(*passing, *rng.sample(sorted(READ), 6), *rng.sample(sorted(LOSING), 1)),
            hostile_rate=rng.choice([0.1, 0.3, 0.6]),
            hopeless_rate=rng.choice([0.0, 0.0, 0.05]),
            stop=rng.choice(sorted(STOPPING)) if rng.random() < 0.15 else None,
        )


@dataclass
class Outcome:
    """What happened, and every check that failed."""

    scenario: Scenario
    n_requests: int = 0
    n_unscored: int = 0
    most_growth_bytes: int = 0
    took_s: float = 0.0
    served: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class HostileJudge:
    """Answers requests as a scenario has it.

    Args:
        scenario: What is mixed in, and how often.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.is_calm = False
        """Whether it behaves from here on."""
        self.bodies: list[bytes] = []
        """Requests since the latest start."""
        self.served: defaultdict[tuple[int, int], Counter[str]] = defaultdict(Counter)
        """Question to what was sent to its requests."""
        self.stopped_with: str | None = None
        self.strangers: list[Key] = []
        """Second steps that were shown what the first did not say."""
        self._told = Told(scenario.seed)
        self._scenario = scenario
        self._random = random.Random(scenario.seed)
        self._n_times: Counter[Key] = Counter()
        self._n_left = scenario.n_questions // 2
        """Requests until the one that stops judging."""
        self._answers = all_of()

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        payload = asked.payload
        key = key_of(payload)
        self.bodies.append(asked.body)
        if not self._told.is_consistent(key, last_text(payload)):
            self.strangers.append(key)
        name = self._name(key)
        self.served[key[:2]][name] += 1
        await self._answers[name](Say(asked, self._told.text(key), writer, self._random))

    def _name(self, key: Key) -> str:
        scenario, rng = self._scenario, self._random
        if self.is_calm:
            return "plain"
        self._n_left -= 1
        if scenario.stop is not None and self._n_left <= 0:
            self.stopped_with = scenario.stop
            return scenario.stop
        if random.Random(repr((scenario.seed, key))).random() < scenario.hopeless_rate:
            return rng.choice(_QUICK)
        if self._n_times[key] >= _MOST_TIMES or rng.random() >= scenario.hostile_rate:
            return "plain"
        self._n_times[key] += 1
        return rng.choice(scenario.hostile)


def run_scenario(scenario: Scenario) -> Outcome:
    """Play one scenario to its end and check it."""
    outcome, judge = Outcome(scenario), HostileJudge(scenario)
    start_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, RawServer(judge) as server, _Memory() as memory:
        play = _Play(scenario, server, judge, Path(folder), outcome)
        play.check()
        outcome.most_growth_bytes = memory.most_growth_bytes
    outcome.n_requests = server.n_requests
    outcome.took_s = time.monotonic() - start_s
    for counts in judge.served.values():
        outcome.served.update(counts)
    if outcome.most_growth_bytes > MOST_GROWTH_BYTES:
        outcome.failures.append(f"took {outcome.most_growth_bytes >> 20} MB of memory")
    return outcome


@dataclass
class _Play:
    """A scenario that is being played."""

    scenario: Scenario
    server: RawServer
    judge: HostileJudge
    folder: Path
    outcome: Outcome
    asked: dict[bytes, tuple[bytes, str]] = field(default_factory=dict)
    """Key in the store to the request's body and what the judge is told to reply to it."""

    def check(self) -> None:
        """Judge three times: a hostile server, then one that behaves, then all is known."""
        scenario, judge, failures = self.scenario, self.judge, self.outcome.failures
        expected = [scenario.expected(0, i) for i in range(scenario.n_questions)]
        judged = self._judge()
        if judged is None:
            failures.append(f"not done after {MOST_S:.0f} s")
            return
        for index, (verdict, reason) in enumerate(judged):
            if verdict is None:
                self.outcome.n_unscored += 1
                self._check_reason(index, str(reason))
            elif verdict != expected[index]:
                failures.append(f"question {index}: {verdict!r}, expected {expected[index]!r}")
        stored = self._check_store()
        judge.is_calm = True
        again = self._judge()
        if again is None or [verdict for verdict, _ in again] != expected:
            failures.append("a server that behaves did not score all that was left")
        n_repeated = sum(body in stored for body in judge.bodies)
        if n_repeated:
            failures.append(f"{n_repeated} requests that were answered were sent again")
        self._check_store()
        if self._judge() != again or judge.bodies:
            failures.append("a finished run started again sent requests")
        if judge.strangers:
            failures.append(f"a second step was shown another's first: {judge.strangers}")

    def _judge(self) -> list[tuple[str | None, str | None]] | None:
        """Verdict and reason of every question, ``None`` where it takes too long."""
        scenario = self.scenario
        self.judge.bodies.clear()
        config = EngineConfig(
            urls=(self.server.url,),
            store=self.folder / "replies",
            concurrency=scenario.concurrency,
            backoff_s=0.005,
            max_backoff_s=0.05,
            n_attempts=5,
            outage_patience_s=0.05,
        )
        with Engine(config) as engine:
            self._note_requests(engine)
            chains = [scenario.chain(0, i) for i in range(scenario.n_questions)]
            future = engine.submit(chains)
            try:
                judgements = future.result(timeout=MOST_S)
            except FutureTimeoutError:
                return None
        return [(shown(judgement), judgement.reason) for judgement in judgements]

    def _note_requests(self, engine: Engine) -> None:
        """Have it written down which reply belongs under which key."""
        send, told = engine._sender.send, Told(self.scenario.seed)

        async def noted(question_index: int, request: Request, attempt: int) -> Reply:
            body = request.body(attempt)
            asked = Asked("", "", {}, body, 0, 0)
            self.asked[request.key(body)] = (body, told.text(key_of(asked.payload)))
            return await send(question_index, request, attempt)

        engine._sender.send = noted  # type: ignore[method-assign] # to listen

    def _check_reason(self, index: int, reason: str) -> None:
        """A question may be lost for what was done to it, or for what stopped the run."""
        served = {*self.judge.served[0, index], *([self.judge.stopped_with or "plain"])}
        words = [words for name in served for words in WORDS.get(name, ())]
        if "gave no reply to any request" in reason:
            return
        if not any(word in reason for word in words):
            self.outcome.failures.append(f"question {index} got {served}, lost for: {reason}")

    def _check_store(self) -> set[bytes]:
        """Read the store back; the bodies of the requests whose replies are in it."""
        store = StoredReplies(self.folder / "replies", patience_s=1.0)
        bodies = set()
        for key, (body, words) in self.asked.items():
            reply = store.get(MODEL, key)
            if reply is not None:
                bodies.add(body)
                if reply.text != words:
                    self.outcome.failures.append(f"the store has {reply.text!r} for {words!r}")
        store.close()
        return bodies


class _Memory:
    """Watches how much more memory the process takes than at the start."""

    def __init__(self) -> None:
        self.most_growth_bytes = 0
        self._before_bytes = _resident_bytes()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.01):
            growth_bytes = _resident_bytes() - self._before_bytes
            self.most_growth_bytes = max(self.most_growth_bytes, growth_bytes)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main() -> int:
    """Play the campaign; 0 where every scenario passed."""
    parser = argparse.ArgumentParser(description="Hostile servers against the judge engine.")
    parser.add_argument("--scenarios", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first scenario")
    arguments = parser.parse_args()
    logger.remove()
    start_s = time.monotonic()
    outcomes = []
    for seed in range(arguments.seed, arguments.seed + arguments.scenarios):
        outcome = run_scenario(Scenario.draw(seed))
        outcomes.append(outcome)
        for failure in outcome.failures:
            print(f"FAILED {failure}: {outcome.scenario}", flush=True)
    served: Counter[str] = sum((outcome.served for outcome in outcomes), Counter())
    n_passed = sum(not outcome.failures for outcome in outcomes)
    n_questions = sum(outcome.scenario.n_questions for outcome in outcomes)
    print(
        f"{n_passed} of {len(outcomes)} scenarios passed in {time.monotonic() - start_s:.0f} s: "
        f"{sum(o.n_requests for o in outcomes):,} requests of {n_questions:,} questions, "
        f"{served.total() - served['plain']:,} hostile answers of "
        f"{len(set(served) - {'plain'})} kinds, "
        f"{sum(o.n_unscored for o in outcomes):,} questions unscored until the second run, "
        f"{max(o.most_growth_bytes for o in outcomes) >> 20} MB more memory at most, "
        f"{max(o.took_s for o in outcomes):.1f} s for the longest"
    )
    print(", ".join(f"{name} {n}" for name, n in sorted(served.items())))
    return 0 if n_passed == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
