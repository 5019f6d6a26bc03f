"""The anchors of one benchmark, and items of a recorded run: asked in turn, and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.chain import Chain
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.asking import Answer
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.benchmark_record import (
    UNREADABLE,
    BenchmarkRecord,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.comparing import (
    Compared,
    InTurn,
    Pair,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.findings import Finding
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.outcome import (
    LEAST_RIGHT,
    BenchmarkOutcome,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.record import JudgeRecord
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.recorded import (
    RecordedItem,
    RecordedItems,
    verdict_in,
    words_of,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.reply_form import (
    form_findings,
    forms_of,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.subjects import Subject
from lmms_eval_captions.lmms_eval_tasks.planted_facts import PlantedFact
from lmms_eval_captions.metrics.disagreement_test import DisagreementTest
from lmms_eval_captions.metrics.exact_share import ExactShare

AskChains = Callable[[Sequence[Chain[Sequence[Any]]]], list[Answer[Sequence[Any]]]]
_MOVED: Final = 2.0
"""Points of 100 by which numbers must move on average to be worth a note."""


class AnchorRound:
    """One benchmark's part of a verification.

    Args:
        subject: The benchmark.
        nonce: Of the verification.
        trusted: The record that is trusted, ``None`` without one.
        recorded: Items of a recorded run, ``None`` without one.
        test: What decides.

    Raises:
        DataError: If the record was taken with other prompts or anchors.
    """

    def __init__(
        self,
        subject: Subject,
        *,
        nonce: int,
        trusted: JudgeRecord | None,
        recorded: RecordedItems | None,
        test: DisagreementTest,
    ) -> None:
        self.subject = subject
        self._nonce = nonce
        self._trusted = trusted
        self._before = benchmark_in(trusted, subject)
        self._recorded = recorded
        self._test = test
        self._answers: list[tuple[PlantedFact, Answer[Sequence[Any]]]] = []
        self._against: Compared | None = None
        self._compared_items: Compared | None = None
        self.is_whole = False
        """Whether all anchors were asked and answered."""

    def run(self, ask: AskChains, *, ask_all: bool = False) -> None:
        """Ask the anchors, then the items of the recorded run.

        Args:
            ask: Asks a portion.
            ask_all: Whether all anchors are asked.
        """
        facts = self.subject.in_order(self._nonce)
        anchors = InTurn[PlantedFact, Answer[Sequence[Any]]](
            ask=lambda portion: ask([self.subject.chain(fact, self._nonce) for fact in portion]),
            compare=self._pair,
            test=self._test,
        )
        compared = anchors.run(facts, ask_all=ask_all or self._before is None)
        self._answers = anchors.answers
        self._against = None if self._before is None else compared
        answered = sum(answer.has_reply for _, answer in self._answers)
        self.is_whole = answered == len(facts)
        if self._recorded is not None:
            items = InTurn[RecordedItem, Answer[Sequence[Any]]](
                ask=lambda portion: ask([self._chain_of(item) for item in portion]),
                compare=self._item_pair,
                test=self._test,
            )
            self._compared_items = items.run(self._recorded.items)

    @property
    def served(self) -> tuple[str, ...]:
        """Names under which the judge answered, where they say more than what was asked for."""
        names = (
            heard.reply.model
            for _, answer in self._answers
            for heard in answer.heard.replies
            if heard.reply.model
        )
        return tuple(dict.fromkeys(names))

    def outcome(self) -> BenchmarkOutcome:
        """What was found out."""
        answered = [(fact, answer) for fact, answer in self._answers if answer.has_reply]
        wrong = [
            fact
            for fact, answer in answered
            if self.subject.said(answer.result) != self.subject.expected(fact)
        ]
        recorded = self._recorded
        return BenchmarkOutcome(
            name=self.subject.name,
            right=ExactShare(len(answered) - len(wrong), len(answered)),
            n_missing=len(self._answers) - len(answered),
            wrong_by_kind=dict(Counter(fact.kind for fact in wrong).most_common()),
            against=self._against,
            recorded=self._compared_items,
            recorded_judge="" if recorded is None else recorded.judge,
            n_open=0 if recorded is None else recorded.n_open,
            trusted="" if self._trusted is None else self._words_of_trusted(),
            fingerprint=self._fingerprint(),
            published=self.subject.verification.published,
        )

    @property
    def is_weak(self) -> bool:
        """Whether the judge gets too few anchors right: that of the record, if there is one."""
        if self._before is None:
            return self.outcome().is_bad
        said = self._before.verdicts
        asked = [fact for fact in self.subject.facts if fact.name in said]
        n_right = sum(said[fact.name] == self.subject.expected(fact) for fact in asked)
        return ExactShare(n_right, len(asked)).high < LEAST_RIGHT

    def record(self) -> BenchmarkRecord:
        """What was said of the anchors that were answered."""
        said = {fact.name: self._said(answer) for fact, answer in self._answers if answer.has_reply}
        return BenchmarkRecord(
            protocol=self.subject.config.protocol,
            prompts=self.subject.prompts,
            anchors=self.subject.anchors,
            verdicts=dict(sorted(said.items())),
            numbers=self._numbers(),
            form=self._forms(),
        )

    def findings(self) -> list[Finding]:
        """What the look of the replies says, and how far numbers moved."""
        before = None if self._before is None else self._before.form
        return [*form_findings(self._forms(), before), *self._moved()]

    def _forms(self) -> Any:  # noqa: ANN401 - as forms_of gives it
        return forms_of(heard for _, answer in self._answers for heard in answer.heard.replies)

    def _numbers(self) -> dict[str, float]:
        numbers = {
            fact.name: self.subject.number(answer.result)
            for fact, answer in self._answers
            if answer.has_reply
        }
        return {name: round(value, 3) for name, value in numbers.items() if value is not None}

    def _moved(self) -> list[Finding]:
        """How far numbers are from the record's on average."""
        before = {} if self._before is None else self._before.numbers
        now = self._numbers()
        moves = [now[name] - before[name] for name in now if name in before]
        if not moves:
            return []
        mean, most = fmean(moves), max(map(abs, moves))
        return [
            Finding(
                name="scores",
                state="note" if abs(mean) > _MOVED else "ok",
                evidence=f"{self.subject.name}: ratings of {len(moves)} captions are {mean:+.2f} "
                f"points beside the record's on average, {most:.1f} at most",
            )
        ]

    def _pair(self, fact: PlantedFact, answer: Answer[Sequence[Any]]) -> Pair | None:
        if not answer.has_reply:
            return None
        now = self._said(answer)
        before = self.subject.expected(fact)
        if self._before is not None:
            before = self._before.verdicts.get(fact.name, UNREADABLE)
        return Pair(f"anchor {fact.name} ({fact.kind}, {fact.relation})", before, now)

    def _said(self, answer: Answer[Sequence[Any]]) -> str:
        """The verdict; of a fresh sample, which is drawn by chance, that there was need of one."""
        if answer.heard.was_unreadable:
            return UNREADABLE
        return self.subject.said(answer.result) or UNREADABLE

    def _chain_of(self, item: RecordedItem) -> Chain[Sequence[Any]]:
        subject = self.subject
        return subject.benchmark.ask(
            item.question, item.caption, config=subject.config, run=self._nonce
        )

    def _item_pair(self, item: RecordedItem, answer: Answer[Sequence[Any]]) -> Pair | None:
        if not answer.has_reply:
            return None
        now = verdict_in(self.subject, answer.result)
        if now is not None and answer.heard.was_unreadable:
            return None  # a fresh sample: whether the recorded one was is not known
        return Pair(item.name, *words_of(self.subject, item.verdict, now))

    def _fingerprint(self) -> str:
        """The record's, or, without one, that of what was said of all anchors; else empty."""
        name = self.subject.name
        if self._trusted is not None and self._before is not None and not self._is_flagged():
            return self._trusted.fingerprints[name]
        if not self.is_whole:
            return ""
        return self.record().fingerprint(self.subject.config.model, self.served)

    def _is_flagged(self) -> bool:
        return self._against is not None and self._against.state == "flagged"

    def _words_of_trusted(self) -> str:
        trusted = self._trusted
        if trusted is None or self._before is None:
            return ""
        return f"{trusted.model} at {', '.join(trusted.endpoints)}, {trusted.made[:10]}"


def benchmark_in(trusted: JudgeRecord | None, subject: Subject) -> BenchmarkRecord | None:
    """The benchmark's part of a record, if it has one that can be compared."""
    found = None if trusted is None else trusted.benchmarks.get(subject.name)
    if found is None:
        return None
    now = (subject.config.protocol, subject.prompts, subject.anchors)
    if (found.protocol, found.prompts, found.anchors) != now:
        raise DataError(
            f"{subject.name}: the record was taken with protocol {found.protocol}, prompts "
            f"{found.prompts or 'ours'} and anchors {found.anchors}; now these are {now[0]}, "
            f"{now[1] or 'ours'} and {now[2]}. Set LMMS_CAPTIONS_PROMPTS and "
            "LMMS_CAPTIONS_PROMPT_ORDER as they were, or take a new record (-o FILE, or --first)"
        )
    missing = [fact.name for fact in subject.facts if fact.name not in found.verdicts]
    if missing:
        raise DataError(
            f"{subject.name}: the record has no verdict on {len(missing)} of {len(subject.facts)} "
            f"anchors, such as {missing[0]}: take a new record (-o FILE, or --first)"
        )
    return found
