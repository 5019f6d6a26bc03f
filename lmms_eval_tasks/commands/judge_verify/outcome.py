"""What a verification came to, benchmark by benchmark and in all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.comparing import Compared
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.findings import Finding, names_of
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.record import JudgeRecord
from lmms_eval_captions.lmms_eval_tasks.published_judges import PublishedJudge
from lmms_eval_captions.lmms_eval_tasks.verified_judges import VerifyState
from lmms_eval_captions.metrics.exact_share import ExactShare

LEAST_RIGHT: Final = 0.85
"""Share of anchors that any judge which can be used gets right: they say in plain words what is
asked, or nothing of it."""
_MOST_MISSING: Final = 0.05
"""Share of anchors without a reply, above which nothing is decided beside a record. Without one all
must have a reply: the fingerprint stands for what is said of every anchor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkOutcome:
    """What one benchmark's anchors, and items of a recorded run, showed."""

    name: str
    right: ExactShare
    """Anchors that were judged as they are built, of those that were answered."""
    n_missing: int
    """Anchors to which no reply came."""
    wrong_by_kind: Mapping[str, int] = field(default_factory=dict)
    """What facts are about to how many were judged otherwise."""
    against: Compared | None = None
    """Anchors beside the record that is trusted, ``None`` without one."""
    recorded: Compared | None = None
    """Items of the recorded run, ``None`` without one."""
    recorded_judge: str = ""
    n_open: int = 0
    """Questions of the recorded run that its own judge runs do not agree on, left out."""
    trusted: str = ""
    """What the record is, in words."""
    fingerprint: str = ""
    published: Sequence[PublishedJudge] = ()
    """Who judged the benchmark's published numbers."""

    @property
    def is_bad(self) -> bool:
        """Whether it judges worse than any judge that can be used."""
        return bool(self.right.of) and self.right.high < LEAST_RIGHT

    @property
    def failures(self) -> list[str]:
        """Why it fails, in a few words each."""
        found = []
        # Beside a record the question is whether it is that judge, good or bad.
        if self.is_bad and self.against is None:
            found.append(
                f"{self.name}: only {self.right.share:.0%} of the anchors are judged right"
            )
        for compared, what in ((self.against, "anchors"), (self.recorded, "recorded items")):
            if compared is not None and compared.state == "flagged":
                n, of = compared.n_different, len(compared.pairs)
                found.append(f"{self.name}: {n} of {of} {what} get another verdict")
        return found

    @property
    def state(self) -> VerifyState:
        """What is known by these items alone."""
        if self.failures:
            return "failed"
        is_open = any(
            each is not None and each.state == "open" for each in (self.against, self.recorded)
        )
        most = 0.0 if self.against is None else _MOST_MISSING
        lacks = self.n_missing > most * (self.right.of + self.n_missing)
        is_doubtful = self.against is None and self.right.share < LEAST_RIGHT
        if is_open or lacks or not self.right.of or is_doubtful:
            return "undecided"
        return "passed"

    @property
    def why_undecided(self) -> str:
        """What keeps it from being decided, empty where it is."""
        if self.state != "undecided":
            return ""
        if self.n_missing:
            of = self.right.of + self.n_missing
            return f"{self.name}: {self.n_missing} of {of} anchors have no reply"
        for compared, what in ((self.against, "anchors"), (self.recorded, "recorded items")):
            if compared is not None and compared.state == "open":
                n, of = compared.n_different, len(compared.pairs)
                return f"{self.name}: {n} of {of} {what} differ, which is too few to tell"
        if not self.right.of:
            return f"{self.name}: no anchor has a reply"
        return (
            f"{self.name}: {self.right.share:.1%} of the anchors are judged right, "
            f"{LEAST_RIGHT:.0%} are expected"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A verification that is over."""

    model: str
    endpoints: tuple[str, ...]
    findings: Sequence[Finding]
    benchmarks: Sequence[BenchmarkOutcome]
    record: JudgeRecord | None
    """Of what the judge said, ``None`` where it was not asked for all anchors."""
    n_calls: int = 0
    """Requests that were sent."""
    n_stored: int = 0
    """Replies that an interrupted verification had left."""
    usd: float | None = None
    """What was billed, ``None`` where the price is not known."""
    goes_on: bool = False
    """Whether a verification was gone on with that had been interrupted, or was undecided."""

    @property
    def failures(self) -> list[str]:
        """Why the endpoint fails, in a few words each."""
        return [
            *names_of(self.findings),
            *(words for each in self.benchmarks for words in each.failures),
        ]

    @property
    def state(self) -> VerifyState:
        """What is known of the endpoint."""
        if self.failures:
            return "failed"
        states = {each.state for each in self.benchmarks}
        return "undecided" if "undecided" in states or not states else "passed"

    @property
    def last_line(self) -> str:
        """The verdict in one line."""
        if self.state == "failed":
            names = names_of(self.findings)
            own = [f"differs on {', '.join(names)}"] if names else []
            parts = [*own, *(words for each in self.benchmarks for words in each.failures)]
            return f"FAILED: {'; '.join(parts)}"
        if self.state == "undecided":
            whys = [each.why_undecided for each in self.benchmarks if each.why_undecided]
            return f"UNDECIDED: {'; '.join(whys) or 'nothing was compared'}"
        shown = ", ".join(f"{each.name} judge-fp:{each.fingerprint}" for each in self.benchmarks)
        return f"PASSED: {shown}"
