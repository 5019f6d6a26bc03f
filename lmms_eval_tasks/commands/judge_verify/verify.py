"""Ask a judge about the anchors, and compare its verdicts with a record or the right ones."""

from __future__ import annotations

import random
import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final, Literal

from lmms_eval_captions.judges.endpoint.adapt import added_params
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.store import slug
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.anchors import Subject, planted_facts
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probes import Finding, Probes
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.record import (
    UNREADABLE,
    BenchmarkRecord,
    JudgeRecord,
)

State = Literal["passed", "failed", "undecided"]
EXIT_CODES: Final[Mapping[State, int]] = {"passed": 0, "failed": 1, "undecided": 3}
_FALSE_ALARM: Final = 0.01
"""Probability, at most, that an honest judge fails by its verdicts."""
_MISSED: Final = 0.05
"""Probability, at most, that a judge passes that differs on :attr:`Limits.other`."""
_MOST_MISSING: Final = 0.05
"""Share of anchors without a reply above which nothing is decided."""
_N_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """Shares of anchors with another verdict."""

    honest: float
    """A judge that differs on so many is honest."""
    other: float
    """A judge that differs on so many is another one."""


WITH_RECORD: Final = Limits(honest=0.03, other=0.10)
"""A judge asked twice at temperature 0 differs on less than 3%."""
WITH_TRUTH: Final = Limits(honest=0.15, other=0.25)
"""Any usable judge has 85% of the anchors right; a few can be debated."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Verdicts of one benchmark next to the expected ones."""

    name: str
    verdicts: Mapping[str, str]
    """Anchor's name to the judge's verdict, of those with a reply."""
    different: Sequence[str]
    """A sentence for each anchor with another verdict."""
    n_anchors: int

    @property
    def n_missing(self) -> int:
        """Anchors without a reply."""
        return self.n_anchors - len(self.verdicts)


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification."""

    model: str
    endpoints: Sequence[str]
    limits: Limits
    findings: Sequence[Finding]
    benchmarks: Sequence[Compared]
    record: JudgeRecord
    n_calls: int = 0
    usd: float | None = None
    reasons: Sequence[str] = field(default_factory=tuple)
    """Why the judge failed, or why nothing was decided."""
    state: State = "passed"

    def to_json(self) -> dict[str, Any]:
        """The result as a JSON object."""
        return {
            "verdict": self.state,
            "reasons": list(self.reasons),
            "model": self.model,
            "endpoints": list(self.endpoints),
            "findings": [
                {"name": each.name, "state": each.state, "text": each.text}
                for each in self.findings
            ],
            "benchmarks": {
                each.name: {
                    "anchors": each.n_anchors,
                    "missing": each.n_missing,
                    "different": len(each.different),
                }
                for each in self.benchmarks
            },
            "calls": self.n_calls,
            "usd": self.usd,
        }


def decide(n: int, n_different: int, limits: Limits, *, n_tests: int = 1) -> State:
    """Decide by exact binomial tests.

    Args:
        n: Anchors with a verdict, >= 0.
        n_different: Of them, those with another verdict than expected.
        limits: Shares of an honest and of another judge.
        n_tests: Tests among which the probability of a false alarm is shared.

    >>> decide(300, 5, WITH_RECORD), decide(300, 40, WITH_RECORD), decide(40, 3, WITH_RECORD)
    ('passed', 'failed', 'undecided')
    """
    from scipy.stats import binom

    if binom.sf(n_different - 1, n, limits.honest) < _FALSE_ALARM / n_tests:
        return "failed"
    return "passed" if binom.cdf(n_different, n, limits.other) < _MISSED else "undecided"


def verify(
    subjects: Sequence[Subject],
    settings: JudgeSettings,
    *,
    against: JudgeRecord | None,
    max_cost_usd: float | None,
) -> Verified:
    """Probe the endpoint, ask about all anchors, and decide.

    Args:
        subjects: Benchmarks with the same judge.
        settings: The judge's endpoint.
        against: Record of the trusted judge; ``None`` compares with the right verdicts.
        max_cost_usd: Cost limit; ``None`` for no limit.

    Raises:
        DataError: If the record lacks a benchmark or was made with other prompts.
        JudgeError: If the endpoint cannot be asked.
    """
    expected = {each.name: _expected(each, against) for each in subjects}
    config = subjects[0].config
    rng = random.Random(secrets.randbits(64))  # noqa: S311 - no secret # nosec B311
    probes = Probes(config, settings, rng)
    findings = probes.findings()
    # Replies of an interrupted verification are used again, those of a finished one never.
    name = slug("+".join([config.model, *settings.endpoint.names]))
    store = settings.cache / "judge_verify" / name
    with _engine(settings, store, max_cost_usd) as engine:
        verdicts = {each.name: _ask(engine, each) for each in subjects}
        totals = engine.totals()
    shutil.rmtree(store, ignore_errors=True)
    compared = [_compare(each.name, verdicts[each.name], expected[each.name]) for each in subjects]
    limits = WITH_TRUTH if against is None else WITH_RECORD
    state, reasons = _result(findings, compared, limits)
    return Verified(
        model=config.model,
        endpoints=settings.endpoint.names,
        limits=limits,
        findings=findings,
        benchmarks=compared,
        record=JudgeRecord(
            config.model,
            datetime.now(timezone.utc).isoformat(timespec="seconds"),
            {each.name: BenchmarkRecord(each.prompts, verdicts[each.name]) for each in subjects},
        ),
        n_calls=totals.calls + probes.n_requests,
        usd=totals.usd,
        reasons=reasons,
        state=state,
    )


def _expected(subject: Subject, against: JudgeRecord | None) -> Mapping[str, str]:
    if against is None:
        return {fact.name: subject.right_verdict(fact) for fact in planted_facts()}
    found = against.benchmarks.get(subject.name)
    if found is None:
        raise DataError(
            f"--against: expected a record of {subject.name}, the file has "
            f"{', '.join(against.benchmarks) or 'none'}; choose of these with --tasks, or write a "
            "new record with -o FILE"
        )
    if found.prompts != subject.prompts:
        raise DataError(
            f"--against: the record of {subject.name} was made with other prompts "
            f"({found.prompts}, now {subject.prompts}); write a new one with -o FILE"
        )
    return found.verdicts


def _engine(settings: JudgeSettings, store: Path, max_cost_usd: float | None) -> Engine:
    return Engine(
        EngineConfig(
            urls=settings.endpoint.urls,
            store=store,
            api=settings.endpoint.api,
            api_key=settings.endpoint.api_key,
            concurrency=settings.concurrency,
            max_rate=settings.rate,
            max_cost_usd=max_cost_usd,
            prices=settings.prices,
            progress=sys.stderr.isatty(),
            alias=settings.alias,
            added_params=added_params(settings.endpoint.urls, settings.endpoint.api),
        )
    )


def _ask(engine: Engine, subject: Subject) -> dict[str, str]:
    """Verdicts of a benchmark's anchors that had a reply."""
    facts = planted_facts()
    futures = [engine.submit([subject.chain(fact)]) for fact in facts]
    verdicts = {}
    for fact, future in zip(facts, futures, strict=True):
        ((judgement,),) = future.result()
        verdict = subject.verification.said(judgement)
        if verdict is not None:
            verdicts[fact.name] = verdict
        elif judgement.reply:
            verdicts[fact.name] = UNREADABLE
    return verdicts


def _compare(name: str, verdicts: Mapping[str, str], expected: Mapping[str, str]) -> Compared:
    different = [
        f"anchor {fact.name} ({fact.kind}): {verdicts[fact.name]}, expected {expected[fact.name]}"
        for fact in planted_facts()
        if fact.name in verdicts
        and fact.name in expected
        and verdicts[fact.name] != expected[fact.name]
    ]
    return Compared(name, verdicts, different, len(planted_facts()))


def _result(
    findings: Sequence[Finding], benchmarks: Sequence[Compared], limits: Limits
) -> tuple[State, list[str]]:
    """State of a verification, and its reasons."""
    reasons = list(dict.fromkeys(each.name for each in findings if each.state == "failed"))
    n = sum(len(each.verdicts) for each in benchmarks)
    n_different = sum(len(each.different) for each in benchmarks)
    # All anchors together, then each benchmark by itself.
    n_tests = len(benchmarks) + 1
    reasons += [
        _share(each.name, len(each.different), len(each.verdicts))
        for each in benchmarks
        if decide(len(each.verdicts), len(each.different), limits, n_tests=n_tests) == "failed"
    ]
    in_all = decide(n, n_different, limits, n_tests=n_tests)
    if in_all == "failed" and not reasons:
        reasons.append(_share("all benchmarks", n_different, n))
    if reasons:
        return "failed", reasons
    missing = sum(each.n_missing for each in benchmarks)
    if missing > _MOST_MISSING * (n + missing):
        return "undecided", [f"{missing} of {n + missing} anchors have no reply"]
    if in_all == "undecided":
        return "undecided", [f"{_share('verdicts', n_different, n)}, too few anchors to tell"]
    return "passed", []


def _share(name: str, n_different: int, n: int) -> str:
    return f"{name}: {n_different} of {n} anchors have another verdict"


def text_of(verified: Verified) -> str:
    """The result for a terminal; the last line is the verdict."""
    lines = [f"{verified.model} at {', '.join(verified.endpoints)}"]
    lines += [f"  {each.state:<7} {each.name}: {each.text}" for each in verified.findings]
    for each in verified.benchmarks:
        n = len(each.verdicts)
        same = (n - len(each.different)) / n if n else float("nan")
        lines.append(
            f"  {each.name}: {n} anchors, {same:.1%} as expected, {each.n_missing} without a reply"
        )
        lines += [f"    {sentence}" for sentence in each.different[:_N_EXAMPLES]]
    cost = "" if verified.usd is None else f", ${verified.usd:.2f}"
    lines.append(f"  {verified.n_calls:,} requests{cost}")
    reasons = f": {'; '.join(verified.reasons)}" if verified.reasons else ""
    return "\n".join([*lines, f"{verified.state.upper()}{reasons}"]) + "\n"
