"""Power of `judge verify` against impostors, and its false alarms for an honest judge.

Scripted judges read the anchors' captions and answer the probes: an honest one that makes mistakes
of its own and changes some verdicts by chance, and impostors made of it (see
tests/support/reading_judge.py). Every simulation draws other judges and other probes; the
benchmarks' own protocols make the requests and read the replies. Exit code 1 if an impostor fails
in less than 95% of the verifications next to a record, or an honest judge in more than 2%.

    python benchmarks/judge_verification.py [--simulations 200]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import _support  # noqa: F401 - adds tests/support to the path
from lmms_eval_captions.judges.endpoint.request import NO_USAGE, Asked, Reply, Request
from lmms_eval_captions.judges.settings import JudgeSettings, read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.results.text_table import text_table
from lmms_eval_captions.verification.anchors import Subject, planted_facts, subjects_of
from lmms_eval_captions.verification.decision import (
    WITH_RECORD,
    WITH_TRUTH,
    Limits,
    State,
    compare,
    conclude,
    decide,
)
from lmms_eval_captions.verification.probes import Finding, Probes
from lmms_eval_captions.verification.verify import verdict_of
from reading_judge import IMPOSTORS, ReadingJudge, whole_request

POWER: Final = 0.95
FALSE_ALARMS: Final = 0.02
Verdicts = Mapping[str, Mapping[str, str]]
"""Benchmark to the verdicts on its anchors."""
States = Mapping[str, tuple[State, State, State]]
"""Name of a case to the states of three verifications."""


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of judge that is verified next to the record of an honest one."""

    name: str
    make: Callable[[ReadingJudge, random.Random], ReadingJudge]
    """Makes it from the recorded judge, which has answered all anchors."""
    is_honest: bool = False
    is_bad: bool = False
    """Expected to fail without a record, too."""


def _impostor(name: str) -> Callable[[ReadingJudge, random.Random], ReadingJudge]:
    """An impostor with the mistakes of the recorded judge unless it is another model."""

    def make(recorded: ReadingJudge, rng: random.Random) -> ReadingJudge:
        judge = IMPOSTORS[name]()
        if judge.model:
            return replace(judge, model=rng.randrange(2**32), chance=rng)
        return replace(judge, model=recorded.model, errs=recorded.errs, chance=rng)

    return make


def _behind_cache(recorded: ReadingJudge, rng: random.Random) -> ReadingJudge:
    weaker = ReadingJudge(model=rng.randrange(2**32), errs=0.4, renews_ids=True, chance=rng)
    return weaker.with_cache_of(recorded)


_BAD: Final = ("a weaker model", "always yes", "prompts without their end")
CASES: Final = (
    Case("the same judge", lambda recorded, rng: _same(recorded, rng, 0.0), is_honest=True),
    Case(
        "the same judge, 1% by chance",
        lambda recorded, rng: _same(recorded, rng, 0.01),
        is_honest=True,
    ),
    Case(
        "the same judge, 3% by chance",
        lambda recorded, rng: _same(recorded, rng, 0.03),
        is_honest=True,
    ),
    Case(
        "the same judge, misses 10% of codes",
        lambda recorded, rng: replace(_same(recorded, rng, 0.0), misses=0.1),
        is_honest=True,
    ),
    *(Case(name, _impostor(name), is_bad=name in _BAD) for name in IMPOSTORS),
    Case("a weaker model behind a stale cache", _behind_cache, is_bad=True),
)


def _same(recorded: ReadingJudge, rng: random.Random, flips: float) -> ReadingJudge:
    return replace(recorded, cache_key=None, flips=flips, few_ids=True, chance=rng)


def main() -> int:
    """Simulate all cases and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.environ.setdefault("LMMS_CAPTIONS_JUDGE", "judge")
    os.environ.setdefault("LMMS_CAPTIONS_JUDGE_URL", "http://127.0.0.1:9/v1")
    settings = read_judge_settings()
    subjects = subjects_of(None, settings)
    problems = []
    rows: list[tuple[str, ...]] = [
        ("judge", "next to a record", "", "without", "", "vdc alone", ""),
        ("", *("failed", "passed") * 3),
    ]
    rng = random.Random(arguments.seed)
    simulations = [simulate(subjects, settings, rng) for _ in range(arguments.simulations)]
    for case in CASES:
        states = [simulation[case.name] for simulation in simulations]
        shares = [_shares(states, index) for index in range(3)]
        rows.append((case.name, *(f"{share:.1%}" for pair in shares for share in pair)))
        (failed, _), (failed_without, _), (failed_alone, _) = shares
        if case.is_honest and max(failed, failed_without, failed_alone) > FALSE_ALARMS:
            problems.append(f"{case.name}: fails in {failed:.1%}, {failed_without:.1%} without")
        if not case.is_honest and failed < POWER:
            problems.append(f"{case.name}: found in {failed:.1%}, expected {POWER:.0%}")
        if case.is_bad and failed_without < POWER:
            problems.append(f"{case.name}: found in {failed_without:.1%} without a record")
    print("\n".join(text_table(rows, n_left=1)))
    for n_benchmarks in (len(subjects), 1):
        for name, limits in (("a record", WITH_RECORD), ("the right verdicts", WITH_TRUTH)):
            false_alarm, found_from = properties_of_test(n_benchmarks, limits)
            print(
                f"{n_benchmarks} benchmarks, {name}: {limits.honest:.0%} different verdicts fail "
                f"in {false_alarm:.1%}, {found_from:.1%} in {POWER:.0%} of all cases"
            )
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    return 1 if problems else 0


def simulate(subjects: list[Subject], settings: JudgeSettings, rng: random.Random) -> States:
    """Return the states of every case: with a record, without, and of one benchmark with a record.

    The recorded judge has 3% of its own mistakes and changes 1% of its verdicts by chance.
    """
    recorded = ReadingJudge(
        model=rng.randrange(2**32), errs=0.03, flips=0.01, chance=rng,
        cache_key=whole_request, renews_ids=True,
    )  # fmt: skip
    record = verdicts_of(recorded, subjects, seed=rng.randrange(1_000_000))
    right = {each.name: each.right_verdicts() for each in subjects}
    states = {}
    for case in CASES:
        judge = case.make(recorded, rng)
        verdicts = verdicts_of(judge, subjects, seed=rng.randrange(1_000_000))
        findings = findings_of(judge, Probes(subjects[0].config, settings, rng))
        with_record = [compare(name, verdicts[name], record[name]) for name in verdicts]
        without = [compare(name, verdicts[name], right[name]) for name in verdicts]
        states[case.name] = (
            conclude(findings, with_record, WITH_RECORD)[0],
            conclude(findings, without, WITH_TRUTH)[0],
            conclude(findings, with_record[:1], WITH_RECORD)[0],
        )
    return states


def verdicts_of(judge: ReadingJudge, subjects: list[Subject], *, seed: int) -> Verdicts:
    """Return a judge's verdicts on all anchors."""

    async def ask(request: Request, read: Callable[[Reply], Any]) -> Asked[Any]:
        reply = _reply(judge, request)
        value = read(reply)
        reason = "unreadable reply" if value is None else None
        return Asked(value, reply.text, reason, cached=False, usage=NO_USAGE)

    async def ask_all() -> Verdicts:
        verdicts: dict[str, dict[str, str]] = {}
        for subject in subjects:
            verdicts[subject.name] = {}
            for fact in planted_facts():
                (judgement,) = await subject.chain(fact, seed)(ask)
                if verdict := verdict_of(subject, judgement):
                    verdicts[subject.name][fact.name] = verdict
        return verdicts

    return asyncio.run(ask_all())


def findings_of(judge: ReadingJudge, probes: Probes) -> list[Finding]:
    """Return what the probes find."""
    return list(probes.read([_reply(judge, request) for request in probes.requests()]))


def _reply(judge: ReadingJudge, request: Request) -> Reply:
    said = judge(json.loads(request.body(0)))
    model = said.extra.get("model", request.model)
    return Reply(said.text, said.finish_reason, model=model, id=said.extra["id"])


def _shares(states: list[tuple[State, State, State]], index: int) -> tuple[float, float]:
    counts = Counter(state[index] for state in states)
    return counts["failed"] / len(states), counts["passed"] / len(states)


def properties_of_test(n_benchmarks: int, limits: Limits) -> tuple[float, float]:
    """Return the false alarms of the test over all anchors, and the share that it finds.

    Returns:
        How often a judge fails that differs on the honest share, and the smallest share of
        different verdicts that fails in 95% of all cases.
    """
    from scipy.stats import binom

    n = n_benchmarks * len(planted_facts())
    n_tests = n_benchmarks + 1 if n_benchmarks > 1 else 1
    states = [decide(n, n_different, limits, n_tests=n_tests) for n_different in range(n + 1)]
    most = states.index("failed") - 1
    shares = (share / 1000 for share in range(1, 1000))
    found_from = next(share for share in shares if binom.sf(most, n, share) >= POWER)
    return float(binom.sf(most, n, limits.honest)), found_from


if __name__ == "__main__":
    sys.exit(main())
