"""Equal runs started side by side: how many requests do they pay for more than once?

Processes that share a store judge the same questions at the same time, of each benchmark in turn.
Some may be killed or stopped on the way. What the others end with must be complete, and of all
requests at most one in twenty may have been answered twice.

    python benchmarks/side_by_side.py --processes 2 4 8 --questions 200
    python benchmarks/side_by_side.py --processes 8 --kill
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loguru import logger

from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from told_judge import Told
from told_questions import MODEL, N_CALLS, chain, expected, script, shown

MOST_REPEATED: Final = 0.05
MOST_S: Final = 300.0


@dataclass(frozen=True)
class EqualRuns:
    """Equal runs of one benchmark."""

    benchmark: str
    n_processes: int
    n_questions: int = 200
    concurrency: int = 16
    latency_s: float = 0.05
    tail: float = 0.0
    """Share of replies that take 20 times as long."""
    spread_s: float = 0.0
    """The processes start within so long."""
    timeout_s: float = 30.0
    hurt: signal.Signals | None = None
    """What one process gets when a third of all is answered: SIGKILL or SIGSTOP."""
    seed: int = 0

    def expected(self) -> list[str]:
        """The verdicts that the judge is told to give."""
        told = Told(self.seed)
        return [expected(told, self.benchmark, 0, index) for index in range(self.n_questions)]


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    n_answered: int
    n_distinct: int
    """Different requests among those answered."""
    n_finished: int
    """Processes that ended with the verdicts that the judge was told to give."""
    seconds: float

    @property
    def repeated(self) -> float:
        """Requests answered again, as a share of the different ones."""
        return self.n_answered / max(1, self.n_distinct) - 1.0

    @property
    def repeated_text(self) -> str:
        """The same in words."""
        return f"{self.n_answered - self.n_distinct} of {self.n_distinct} again"


def judge_side_by_side(runs: EqualRuns) -> Outcome:
    """Start equal runs side by side, and wait for their ends."""
    behaviour = Behaviour(latency_s=runs.latency_s, tail=runs.tail, logprobs="whole")
    rng = random.Random(runs.seed)
    with tempfile.TemporaryDirectory() as name, JudgeServer(behaviour) as server:
        server.script = script(Told(runs.seed))
        folder, started_s = Path(name), time.monotonic()
        children = {
            _fork(runs, server.url, folder, number, rng.uniform(0.0, runs.spread_s))
            for number in range(runs.n_processes)
        }
        _wait(children, runs, server)
        verdicts = [json.loads(path.read_text()) for path in sorted(folder.glob("result-*"))]
        return Outcome(
            n_answered=server.counts.n_answered,
            n_distinct=len(server.counts.answered),
            n_finished=verdicts.count(runs.expected()),
            seconds=time.monotonic() - started_s,
        )


def _wait(children: set[int], runs: EqualRuns, server: JudgeServer) -> None:
    """Wait for the processes; hurt one on the way."""
    victim, is_hurt = min(children), runs.hurt is None
    n_all_calls = N_CALLS[runs.benchmark] * runs.n_questions
    deadline_s = time.monotonic() + MOST_S
    while children - ({victim} if runs.hurt == signal.SIGSTOP and is_hurt else set()):
        for child in list(children):
            if os.waitpid(child, os.WNOHANG)[0]:
                children.discard(child)
        is_third = len(server.counts.answered) > n_all_calls / 3
        if not is_hurt and is_third and victim in children:
            os.kill(victim, runs.hurt or signal.SIGKILL)
            is_hurt = True
        if time.monotonic() > deadline_s:
            break
        time.sleep(0.01)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _fork(runs: EqualRuns, url: str, folder: Path, number: int, wait_s: float) -> int:
    child = os.fork()
    if child:
        return child
    try:
        time.sleep(wait_s)
        _judge(runs, url, folder, folder / f"result-{number}")
    except BaseException:  # noqa: BLE001 - a child must not return into the parent's code
        traceback.print_exc()
    finally:
        os._exit(0)


def _judge(runs: EqualRuns, url: str, folder: Path, result: Path) -> None:
    """What one process does: judge everything, and write what came of it."""
    config = EngineConfig(
        urls=(url,),
        store=folder / "replies",
        concurrency=runs.concurrency,
        outage_patience_s=1.0,
    )
    judge = JudgeConfig(model=MODEL, timeout_s=runs.timeout_s)
    with Engine(config) as engine:
        chains = [chain(runs.benchmark, 0, i, judge) for i in range(runs.n_questions)]
        judgements = engine.submit(chains).result()
    draft = result.with_name(f"draft-{result.name}")
    draft.write_text(json.dumps(list(map(shown, judgements))))
    draft.rename(result)


def main() -> int:
    """Play every benchmark with every number of processes; 0 where the promise is kept."""
    parser = argparse.ArgumentParser(description="Equal runs started side by side.")
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=16, help="of each process")
    parser.add_argument("--latency", type=float, default=0.05, help="seconds per reply")
    parser.add_argument(
        "--tail", type=float, default=0.01, help="share that takes 20 times as long"
    )
    parser.add_argument("--spread", type=float, default=0.0, help="seconds within which they start")
    parser.add_argument("--kill", action="store_true", help="kill one of them in the middle")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logger.remove()
    is_kept = True
    for n_processes in arguments.processes:
        for benchmark in N_CALLS:
            runs = EqualRuns(
                benchmark,
                n_processes,
                n_questions=arguments.questions,
                concurrency=arguments.concurrency,
                latency_s=arguments.latency,
                tail=arguments.tail,
                spread_s=arguments.spread,
                hurt=signal.SIGKILL if arguments.kill else None,
                seed=arguments.seed,
            )
            outcome = judge_side_by_side(runs)
            n_expected = n_processes - arguments.kill
            is_good = outcome.n_finished >= n_expected and outcome.repeated <= MOST_REPEATED
            is_kept = is_kept and is_good
            print(
                f"{n_processes} processes, {benchmark}: {outcome.repeated:.1%} "
                f"({outcome.repeated_text}), {outcome.n_finished} finished, "
                f"{outcome.seconds:.1f} s{'' if is_good else ' FAILED'}",
                flush=True,
            )
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
