"""One verification: probes, anchors beside a record, items of a recorded run; what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial

from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.http.completion_head import CompletionHead, heads_of
from lmms_eval_captions.judges.endpoint.model_names import is_same_model
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.anchor_round import AnchorRound
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.asking import (
    ask_all,
    engine_of,
    reply_to,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.findings import Finding
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.head_findings import (
    model_finding,
    with_heads,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.outcome import (
    BenchmarkOutcome,
    Verified,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.plan import Plan
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probe_facts import (
    ProbeFacts,
    compared_facts,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probe_findings import ProbeReader
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probes import Probed
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.record import JudgeRecord
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.subjects import Subject


@dataclass(frozen=True, slots=True)
class JudgeVerification:
    """A verification of one judge, from its plan to what is kept."""

    plan: Plan

    def run(self) -> Verified:
        """Ask, compare, and keep what came of it.

        Raises:
            JudgeError: If the endpoint cannot be asked.
            DataError: If something cannot be read or kept.
        """
        limit_usd = self.plan.limit_usd
        heads = self._heads()
        whose = self._model_finding(heads)
        if whose.state == "differs":
            verified = replace(
                self._verified([whose], [], None),
                n_calls=self.plan.n_heads,
                usd=self.plan.heads_usd,
            )
            self.plan.kept.keep(verified, self.plan.subjects, self.plan.trusted)
            return verified
        with engine_of(self.plan.settings, max_cost_usd=limit_usd) as engine:
            findings, facts = self._probe(engine, heads)
            rounds = [self._round(subject, engine) for subject in self.plan.subjects]
            outcomes = [each.outcome() for each in rounds]
            totals = engine.totals()
        if any(each.is_weak for each in rounds):
            findings = [each.of_weak_judge() for each in findings]
        findings = [whose, *findings, *self._served(rounds)]
        findings += [finding for each in rounds for finding in each.findings()]
        record = self._record(facts, rounds, outcomes)
        verified = replace(
            self._verified(findings, outcomes, record),
            n_calls=totals.calls + self.plan.n_heads,
            n_stored=totals.n_from_store,
            usd=None if totals.usd is None else totals.usd + (self.plan.heads_usd or 0.0),
        )
        self.plan.kept.keep(verified, self.plan.subjects, self.plan.trusted)
        return verified

    def _heads(self) -> list[CompletionHead]:
        """Of two completions of the first address, and of one of each other."""
        settings, endpoint = self.plan.settings, self.plan.settings.endpoint
        heads: list[CompletionHead] = []
        for url, requests in zip(endpoint.urls, self.plan.heads, strict=True):
            heads += heads_of(url, requests, api_key=endpoint.api_key, api=settings.api)
        return heads

    def _model_finding(self, heads: Sequence[CompletionHead]) -> Finding:
        alias, model = self.plan.settings.alias, self.plan.model
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
        answers = ask_all(engine, [reply_to(probe.request) for probe in self.plan.probes])
        probed = [
            Probed(probe, answer.result)
            for probe, answer in zip(self.plan.probes, answers, strict=True)
        ]
        reader = ProbeReader(probed)
        findings, facts = reader.findings(), reader.facts()
        findings = [
            with_heads(each, heads) if each.name == "cached replies" else each for each in findings
        ]
        if self.plan.trusted is not None:
            findings += compared_facts(facts, self.plan.trusted.probes)
        return [self._weighed(finding) for finding in findings], facts

    def _weighed(self, finding: Finding) -> Finding:
        """A finding about log-probabilities fails those alone who need them."""
        needs = any(each.verification.needs_logprobs for each in self.plan.subjects)
        if finding.name == "logprobs" and finding.state == "differs" and not needs:
            return replace(finding, state="note")
        return finding

    def _round(self, subject: Subject, engine: Engine) -> AnchorRound:
        found = AnchorRound(
            subject,
            nonce=self.plan.nonce,
            trusted=self.plan.trusted,
            recorded=self.plan.items.get(subject.name),
            test=self.plan.options.test,
        )
        found.run(partial(ask_all, engine), ask_all=self.plan.options.wants_record)
        return found

    def _served(self, rounds: Sequence[AnchorRound]) -> list[Finding]:
        """Whether the same version answered as in the record."""
        before = _by_fold(self.plan.trusted.served if self.plan.trusted else ())
        now = _by_fold(name for each in rounds for name in each.served)
        others = [name for fold, name in sorted(now.items()) if fold not in before]
        if not before or not others:
            return []
        is_other = len(others) == len(now)
        return [
            Finding(
                name="model",
                state="differs" if is_other else "note",
                evidence=f"{', '.join(others)} answers{'' if is_other else ', too'}, in the record "
                f"it was {', '.join(sorted(before.values()))}",
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
            model=self.plan.model,
            served=tuple(served),
            endpoints=self.plan.settings.endpoint.names,
            made=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            probes=facts,
            benchmarks=whole,
            fingerprints=prints,
        )

    def _verified(
        self,
        findings: Sequence[Finding],
        outcomes: Sequence[BenchmarkOutcome],
        record: JudgeRecord | None,
    ) -> Verified:
        return Verified(
            model=self.plan.model,
            endpoints=self.plan.settings.endpoint.names,
            findings=findings,
            benchmarks=outcomes,
            record=record,
            goes_on=self.plan.goes_on,
        )


def _by_fold(names: Iterable[str]) -> dict[str, str]:
    """Names by what is the same where they differ in upper and lower case alone."""
    return {name.casefold(): name for name in names}
