"""One verification: probes, anchors beside a record, items of a recorded run; what came of it."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.http.completion_head import CompletionHead, heads_of
from lmms_eval_captions.judges.endpoint.model_names import is_same_model
from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.anchor_round import AnchorRound
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.asking import (
    ask_all,
    engine_of,
    reply_to,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.bounds import Bounds, bounds_of
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.findings import Finding
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.keeping import KeptJudge
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.outcome import (
    BenchmarkOutcome,
    Verified,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probe_findings import (
    ProbeFacts,
    ProbeReader,
    compared_facts,
    model_finding,
    with_heads,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probes import (
    Probe,
    Probed,
    ProbeMaker,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.record import JudgeRecord
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.recorded import (
    RecordedItems,
    recorded_items,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.session import open_session
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.subjects import Subject
from lmms_eval_captions.metrics.disagreement_test import DISAGREEMENT_TEST, DisagreementTest

_N_HEADS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is to be verified, and beside what."""

    against: JudgeRecord | None = None
    """The record that is trusted; without, what is kept of this judge at this endpoint."""
    recorded: Path | None = None
    """Results folder of a recorded run."""
    is_first: bool = False
    """Whether what is kept of the judge is put aside, and a new record taken."""
    is_anew: bool = False
    """Whether an interrupted verification is not gone on with."""
    wants_record: bool = False
    """Whether all anchors are asked, for a record that is written."""
    max_cost_usd: float | None = None
    test: DisagreementTest = DISAGREEMENT_TEST


@dataclass(slots=True)
class Verification:
    """A verification of one judge, from the plan to what is kept.

    Args:
        subjects: The benchmarks, all with the same judge.
        settings: Whom to ask.
        options: What is to be verified.
    """

    subjects: Sequence[Subject]
    settings: JudgeSettings
    options: Options
    kept: KeptJudge = field(init=False)
    trusted: JudgeRecord | None = field(init=False)
    nonce: int = field(init=False)
    items: dict[str, RecordedItems] = field(init=False)
    """Benchmark to the items of the recorded run."""
    _probes: list[Probe] = field(init=False)
    _maker: ProbeMaker = field(init=False)
    _goes_on: bool = field(init=False)

    def __post_init__(self) -> None:
        self.kept = KeptJudge.of(self.model, self.settings)
        self.trusted = self.options.against
        if self.trusted is None and not self.options.is_first:
            self.trusted = self.kept.record
        session = open_session(self.kept.session, anew=self.options.is_anew)
        self.nonce, self._goes_on = session.nonce, session.goes_on
        self.items = self._recorded_items()
        # Not of the session: what it drew before has been seen by the endpoint.
        rng = random.Random(secrets.randbits(64))  # noqa: S311 - no secret # nosec B311
        self._maker = ProbeMaker(self.model, self.subjects[0].config.timeout_s, rng)
        self._probes = self._maker.all()

    @property
    def model(self) -> str:
        """Name of the judge."""
        return self.subjects[0].config.model

    @property
    def bounds(self) -> Bounds:
        """What it takes at most."""
        items = [
            (each, self.items[each.name].items) for each in self.subjects if each.name in self.items
        ]
        return bounds_of(
            self.subjects,
            items,
            self._probes,
            n_heads=self._n_heads,
            settings=self.settings,
            prices=load_prices(self.settings.prices),
        )

    @property
    def plan(self) -> list[str]:
        """What is going to be done, a sentence each."""
        names = ", ".join(each.name for each in self.subjects)
        where = ", ".join(self.settings.endpoint.names)
        beside = f"a record of {self.trusted.made[:10]}" if self.trusted else "how they are built"
        told = [
            f"{self.model} at {where}: anchors of {names}, beside {beside}",
            self.bounds.words,
        ]
        if self.trusted is not None and not self.options.wants_record:
            told.append(
                f"some {self.options.test.least_items} of {len(self.subjects[0].facts)} anchors "
                "suffice where nothing differs"
            )
        if self._goes_on:
            told.append(
                "goes on with the verification that was begun within a day: what was answered "
                "then is not asked again (--anew asks all of it)"
            )
        return told

    def run(self) -> Verified:
        """Ask, compare, and keep what came of it.

        Raises:
            JudgeError: If the endpoint cannot be asked.
            DataError: If something cannot be read or kept.
        """
        heads = self._heads()
        whose = self._model_finding(heads)
        if whose.state == "differs":
            verified = self._verified([whose], [], None)
            self.kept.keep(verified, self.subjects, self.trusted)
            return verified
        with engine_of(self.settings, max_cost_usd=self.options.max_cost_usd) as engine:
            findings, facts = self._probe(engine, heads)
            rounds = [self._round(subject, engine) for subject in self.subjects]
            outcomes = [each.outcome() for each in rounds]
            totals = engine.totals()
        findings = [whose, *findings, *self._served(rounds)]
        findings += [finding for each in rounds for finding in each.findings()]
        record = self._record(facts, rounds, outcomes)
        verified = replace(
            self._verified(findings, outcomes, record),
            n_calls=totals.calls + self._n_heads,
            n_stored=totals.n_from_store,
            usd=totals.usd,
        )
        self.kept.keep(verified, self.subjects, self.trusted)
        return verified

    @property
    def _n_heads(self) -> int:
        return _N_HEADS + len(self.settings.endpoint.urls) - 1

    def _heads(self) -> list[CompletionHead]:
        """Of two completions of the first address, and of one of each other."""
        endpoint = self.settings.endpoint
        heads: list[CompletionHead] = []
        for place, url in enumerate(endpoint.urls):
            requests = self._maker.heads(1 if place else _N_HEADS)
            heads += heads_of(url, requests, api_key=endpoint.api_key, api=self.settings.api)
        return heads

    def _model_finding(self, heads: Sequence[CompletionHead]) -> Finding:
        alias, model = self.settings.alias, self.model
        is_same = all(
            is_same_model(head.model, alias or model)
            or (alias is not None and is_same_model(head.model, model))
            for head in heads
            if head.model
        )
        return model_finding(heads, alias or model, is_same=is_same)

    def _probe(
        self, engine: Engine, heads: Sequence[CompletionHead]
    ) -> tuple[list[Finding], ProbeFacts]:
        answers = ask_all(engine, [reply_to(probe.request) for probe in self._probes])
        probed = [
            Probed(probe, answer.result)
            for probe, answer in zip(self._probes, answers, strict=True)
        ]
        reader = ProbeReader(probed)
        findings, facts = reader.findings(), reader.facts()
        findings = [
            with_heads(each, heads) if each.name == "cached replies" else each for each in findings
        ]
        if self.trusted is not None:
            findings += compared_facts(facts, self.trusted.probes)
        return [self._weighed(finding) for finding in findings], facts

    def _weighed(self, finding: Finding) -> Finding:
        """A finding about log-probabilities fails those alone who need them."""
        needs = any(each.verification.needs_logprobs for each in self.subjects)
        if finding.name == "logprobs" and finding.state == "differs" and not needs:
            return replace(finding, state="note")
        return finding

    def _round(self, subject: Subject, engine: Engine) -> AnchorRound:
        found = AnchorRound(
            subject,
            nonce=self.nonce,
            trusted=self.trusted,
            recorded=self.items.get(subject.name),
            test=self.options.test,
        )
        ask: Callable[[Sequence[Any]], list[Any]] = lambda chains: ask_all(engine, chains)  # noqa: E731
        found.run(ask, ask_all=self.options.wants_record)
        return found

    def _served(self, rounds: Sequence[AnchorRound]) -> list[Finding]:
        """Whether the same version answered as in the record."""
        before = set(self.trusted.served) if self.trusted else set()
        now = {name for each in rounds for name in each.served}
        if not before or not now or {name.casefold() for name in before & now}:
            return []
        return [
            Finding(
                name="model",
                state="differs",
                evidence=f"{', '.join(sorted(now))} answers, in the record it was "
                f"{', '.join(sorted(before))}",
                advice="name the version that you want with LMMS_CAPTIONS_JUDGE",
            )
        ]

    def _record(
        self,
        facts: ProbeFacts,
        rounds: Sequence[AnchorRound],
        outcomes: Sequence[BenchmarkOutcome],
    ) -> JudgeRecord | None:
        """What was said of all anchors, of those benchmarks where all were asked."""
        whole = {each.subject.name: each.record() for each in rounds if each.is_whole}
        if not whole:
            return None
        served = dict.fromkeys(name for each in rounds for name in each.served)
        prints = {each.name: each.fingerprint for each in outcomes if each.name in whole}
        return JudgeRecord(
            model=self.model,
            served=tuple(served),
            endpoints=self.settings.endpoint.names,
            made=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            probes=facts,
            benchmarks=whole,
            fingerprints=prints,
        )

    def _recorded_items(self) -> dict[str, RecordedItems]:
        from lmms_eval_captions.judges.errors import DataError

        folder = self.options.recorded
        if folder is None:
            return {}
        found = {
            subject.name: recorded_items(
                folder, subject, self.nonce, most=self.options.test.most_items
            )
            for subject in self.subjects
        }
        items = {name: each for name, each in found.items() if each is not None}
        if not items:
            raise DataError(
                f"--recorded {folder}: expected a run of any of {', '.join(found)}, which are "
                "verified, found none; choose others with --tasks"
            )
        return items

    def _verified(
        self,
        findings: Sequence[Finding],
        outcomes: Sequence[BenchmarkOutcome],
        record: JudgeRecord | None,
    ) -> Verified:
        return Verified(
            model=self.model,
            endpoints=self.settings.endpoint.names,
            findings=findings,
            benchmarks=outcomes,
            record=record,
        )
