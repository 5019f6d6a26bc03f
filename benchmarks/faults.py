"""A seeded campaign of faults against the judge engine: kills, server faults, full disks, restarts.

Each scenario judges some hundred questions in one to three processes that share a store, while the
server misbehaves and the processes are killed, and starts them again until they finish. Then it
checks:

- the verdicts are those of a run without faults, every one of them;
- nothing that was answered is asked again, beyond what was in flight at a kill or not saved;
- one more start sends nothing.

    python benchmarks/faults.py --scenarios 200 --seed 0
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from loguru import logger

from judge_server import Behaviour, JudgeServer, vdc_reply
from lmms_eval_captions.judges.config import JudgeConfig
from lmms_eval_captions.judges.engine import Engine, EngineConfig
from lmms_eval_captions.judges.prompt import load_prompt
from lmms_eval_captions.judges.protocols.vdc import Question, judge_question, read_match
from lmms_eval_captions.judges.request import Reply
from lmms_eval_captions.judges.store import ReplyStore
from lmms_eval_captions.judges.text import slug

CONFIG = JudgeConfig(model="judge", timeout_s=0.5)
PASSING_FAULTS = ("500", "503", "drop", "cut", "garbage", "hang")
MOST_STARTS = 30


@dataclass(frozen=True)
class Scenario:
    """What is going to happen."""

    seed: int
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

    @classmethod
    def draw(cls, seed: int) -> Scenario:
        """The scenario of a seed."""
        rng = random.Random(seed)
        storm = rng.random() < 0.05
        latency_s = rng.choice([0.0, 0.002, 0.01])
        kills = sorted(rng.uniform(0.05, 0.9) for _ in range(rng.choice([0, 1, 1, 2, 3])))
        return cls(
            seed=seed,
            n_processes=rng.choice([1, 1, 2, 3]),
            n_questions=10 if storm else rng.randint(20, 80),
            concurrency=rng.choice([1, 4, 16, 64]),
            latency_s=latency_s,
            faults=("429",) if storm else tuple(rng.sample(PASSING_FAULTS, rng.randint(0, 3))),
            fault_rate=rng.choice([0.02, 0.1, 0.2]),
            kills=tuple(kills),
            disk_bytes=rng.randint(200, 6000) if rng.random() < 0.2 else None,
            outage=rng.choice([401, 404, 500, 503]) if rng.random() < 0.15 else None,
        )


@dataclass
class Outcome:
    """What happened, and every check that failed."""

    scenario: Scenario
    n_starts: int = 0
    n_calls: int = 0
    n_repeated: int = 0
    n_excused: int = 0
    """Requests that may have been repeated: in flight at a kill, or answered and not saved."""
    failures: list[str] = field(default_factory=list)


def run_scenario(scenario: Scenario) -> Outcome:
    """Play one scenario to its end and check it."""
    outcome = Outcome(scenario)
    behaviour = Behaviour(
        latency_s=scenario.latency_s,
        faults=scenario.faults,
        fault_rate=scenario.fault_rate,
        max_faults=2,
    )
    with tempfile.TemporaryDirectory() as folder, JudgeServer(behaviour) as server:
        kills = list(scenario.kills)
        verdicts = None
        while verdicts is None and outcome.n_starts < MOST_STARTS:
            verdicts = _start(scenario, server, Path(folder), outcome, kills)
        outcome.n_calls = server.counts.n_requests
        outcome.n_repeated = server.counts.n_repeated
        _check(scenario, server, Path(folder), outcome, verdicts)
    return outcome


def _check(
    scenario: Scenario,
    server: JudgeServer,
    folder: Path,
    outcome: Outcome,
    verdicts: list[list[str]] | None,
) -> None:
    if verdicts is None:
        outcome.failures.append(f"not finished after {outcome.n_starts} starts")
        return
    expected = [
        [_expected(_question(p, i)) for i in range(scenario.n_questions)]
        for p in range(scenario.n_processes)
    ]
    if verdicts != expected:
        outcome.failures.append("verdicts differ from those of a run without faults")
    if outcome.n_repeated > outcome.n_excused:
        outcome.failures.append(
            f"{outcome.n_repeated} answered requests were sent again, {outcome.n_excused} may be"
        )
    n_before = server.counts.n_requests
    server.behaviour = Behaviour()
    again = _start(scenario, server, folder, Outcome(scenario, n_starts=1), [])
    if again != expected or server.counts.n_requests != n_before:
        outcome.failures.append("a finished run started again sent requests")


def _start(
    scenario: Scenario, server: JudgeServer, folder: Path, outcome: Outcome, kills: list[float]
) -> list[list[str]] | None:
    """Start all processes once; their verdicts, or ``None`` where one was killed or failed."""
    first = outcome.n_starts == 0
    outcome.n_starts += 1
    disk_bytes = scenario.disk_bytes if first else None
    outage = scenario.outage if first else None
    in_flight = scenario.n_processes * scenario.concurrency
    n_all_calls = 2 * scenario.n_processes * scenario.n_questions
    results = [folder / f"result-{p}" for p in range(scenario.n_processes)]
    for path in results:
        path.unlink(missing_ok=True)
    children = [
        _fork(partial(_judge, scenario, p, server.url, folder, results[p], disk_bytes))
        for p in range(scenario.n_processes)
    ]
    running = set(children)
    outage_s = time.monotonic() + 0.05
    disturbed = disk_bytes is not None
    while running:
        for child in list(running):
            if os.waitpid(child, os.WNOHANG)[0]:
                running.discard(child)
        if kills and len(server.counts.answered) >= kills[0] * n_all_calls:
            kills.pop(0)
            for child in running:
                os.kill(child, signal.SIGKILL)
            disturbed = True
        if outage is not None and time.monotonic() > outage_s:
            server.behaviour.status, outage = outage, None
        time.sleep(0.001)
    server.behaviour.status = 200
    if disturbed:
        _settle(server)
        # Answered while on the way back, or not saved; never more than were on their way.
        n_unsaved = len(server.counts.answered) - _n_stored(folder)
        outcome.n_excused += min(in_flight, max(0, n_unsaved))
    # A reply that came after its time-out was answered, and is asked for again.
    outcome.n_excused += server.counts.n_late
    server.counts.n_late = 0
    if not all(path.exists() for path in results):
        return None
    verdicts = [path.read_text().split() for path in results]
    return None if any("None" in process for process in verdicts) else verdicts


def _judge(
    scenario: Scenario, process: int, url: str, folder: Path, result: Path, disk_bytes: int | None
) -> None:
    """What one process does: judge its share, and write its verdicts."""
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
        chains = [
            partial(
                judge_question,
                question=_question(process, index),
                caption=_caption(process, index),
                config=CONFIG,
                run=0,
            )
            for index in range(scenario.n_questions)
        ]
        judgements = engine.submit(chains).result()
    draft = result.with_suffix(".draft")
    draft.write_text(
        " ".join(f"{j.verdict}:{j.score}" if j.verdict else "None" for j in judgements)
    )
    draft.rename(result)


def _settle(server: JudgeServer) -> None:
    """Wait until the server is done with what killed processes had sent."""
    n_seen = -1
    while n_seen < server.counts.n_requests or server.counts.n_in_flight:
        n_seen = server.counts.n_requests
        time.sleep(0.02)


def _n_stored(folder: Path) -> int:
    """Replies on disk, those of all processes together."""
    store = ReplyStore(folder / "replies" / slug(CONFIG.model))
    n_stored = len(store)
    store.close()
    return n_stored


def _fork(act: partial[None]) -> int:
    """Run in a child process, which has everything imported already."""
    child = os.fork()
    if child:
        return child
    try:
        act()
    except OSError:
        pass  # the result does not fit on the full disk either: a restart will write it
    except BaseException:  # noqa: BLE001 - a child must not return into the parent's code
        traceback.print_exc()
    finally:
        os._exit(0)


def _question(process: int, index: int) -> Question:
    return Question(f"What is number {index} of {process}?", f"gold {index}")


def _caption(process: int, index: int) -> str:
    return f"Caption {index // 8} of process {process}. " * 5


def _expected(question: Question) -> str:
    """The verdict that the server's replies, pure functions of the prompt, lead to."""
    process = int(question.question.split()[-1].rstrip("?"))
    index = int(question.question.split()[3])
    prompt = load_prompt("vdc_answer").render(
        caption=_caption(process, index), question=question.question
    )
    answer = vdc_reply(str(prompt[-1]["content"]))
    prompt = load_prompt("vdc_match").render(
        question=question.question, answer=question.answer, predicted_answer=answer
    )
    verdict = read_match(Reply(vdc_reply(str(prompt[-1]["content"]))))
    if verdict is None:
        raise AssertionError("the server's reply must be readable")
    return f"{verdict[0]}:{verdict[1]}"


def main() -> int:
    """Play the campaign; 0 where every scenario passed."""
    parser = argparse.ArgumentParser(description="Faults against the judge engine.")
    parser.add_argument("--scenarios", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first scenario")
    arguments = parser.parse_args()
    logger.remove()
    started_s = time.monotonic()
    outcomes = []
    for seed in range(arguments.seed, arguments.seed + arguments.scenarios):
        outcomes.append(run_scenario(Scenario.draw(seed)))
        for failure in outcomes[-1].failures:
            print(f"FAILED {failure}: {outcomes[-1]}", flush=True)
    n_passed = sum(not outcome.failures for outcome in outcomes)
    print(
        f"{n_passed} of {len(outcomes)} scenarios passed in {time.monotonic() - started_s:.0f} s: "
        f"{sum(o.n_starts for o in outcomes)} starts, {sum(o.n_calls for o in outcomes):,} calls, "
        f"{sum(len(o.scenario.kills) for o in outcomes)} kills, "
        f"{sum(o.n_repeated for o in outcomes)} answered requests sent again of "
        f"{sum(o.n_excused for o in outcomes):,} that were in flight at a kill or unsaved"
    )
    return 0 if n_passed == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
