"""Exact binomial tests that decide about a judge's verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from lmms_eval_captions.verification.anchors import planted_facts
from lmms_eval_captions.verification.probes import Finding

State = Literal["passed", "failed", "undecided"]
_FALSE_ALARM: Final = 0.01
"""Probability, at most, that an honest judge fails by its verdicts."""
_MISSED: Final = 0.05
"""Probability, at most, that a judge passes that differs on :attr:`Limits.other`."""
_MOST_MISSING: Final = 0.05
"""Share of anchors without a reply above which nothing is decided."""


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
    n: int
    """Anchors that have a verdict on both sides."""
    n_missing: int
    """Anchors without a reply, now or in the record."""
    different: Sequence[str]
    """A sentence for each anchor with another verdict."""

    def __str__(self) -> str:
        return f"{self.name}: {len(self.different)} of {self.n} anchors have another verdict"


def compare(name: str, verdicts: Mapping[str, str], expected: Mapping[str, str]) -> Compared:
    """Compare a benchmark's verdicts with the expected ones, both by the anchors' names."""
    facts = [fact for fact in planted_facts() if fact.name in verdicts and fact.name in expected]
    different = [
        f"anchor {fact.name} ({fact.kind}): {verdicts[fact.name]}, expected {expected[fact.name]}"
        for fact in facts
        if verdicts[fact.name] != expected[fact.name]
    ]
    return Compared(name, len(facts), len(planted_facts()) - len(facts), different)


def decide(n: int, n_different: int, limits: Limits, *, n_tests: int = 1) -> State:
    """Decide by exact binomial tests on n verdicts, some different from the expected ones.

    The probability of a false alarm is shared among ``n_tests``.

    >>> decide(300, 5, WITH_RECORD), decide(300, 40, WITH_RECORD), decide(40, 3, WITH_RECORD)
    ('passed', 'failed', 'undecided')
    """
    from scipy.stats import binom

    if binom.sf(n_different - 1, n, limits.honest) < _FALSE_ALARM / n_tests:
        return "failed"
    return "passed" if binom.cdf(n_different, n, limits.other) < _MISSED else "undecided"


def conclude(
    findings: Sequence[Finding], benchmarks: Sequence[Compared], limits: Limits
) -> tuple[State, list[str]]:
    """Return the state of a verification of one or more benchmarks, and its reasons."""
    reasons = list(dict.fromkeys(each.name for each in findings if each.state == "failed"))
    total = Compared(
        "all benchmarks",
        sum(each.n for each in benchmarks),
        sum(each.n_missing for each in benchmarks),
        [sentence for each in benchmarks for sentence in each.different],
    )
    tests = [*benchmarks, total] if len(benchmarks) > 1 else benchmarks
    states = [decide(each.n, len(each.different), limits, n_tests=len(tests)) for each in tests]
    failed = [str(each) for each, state in zip(tests, states, strict=True) if state == "failed"]
    if len(failed) > 1 and states[-1] == "failed":
        failed.pop()  # Benchmarks that failed say more than their total.
    reasons += failed
    if reasons:
        return "failed", reasons
    n_anchors = total.n + total.n_missing
    if total.n_missing > _MOST_MISSING * n_anchors:
        return "undecided", [f"{total.n_missing} of {n_anchors} anchors have no reply to compare"]
    if states[-1] == "undecided":
        return "undecided", [f"{tests[-1]}, too few anchors to tell"]
    return "passed", []
