"""Ask a judge about the anchors, and compare its verdicts with a record or the right ones."""

from __future__ import annotations

import random
import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.store import slug
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.judging.session import engine_config
from lmms_eval_captions.verification.anchors import Subject, planted_facts
from lmms_eval_captions.verification.decision import (
    WITH_RECORD,
    WITH_TRUTH,
    Compared,
    State,
    compare,
    conclude,
)
from lmms_eval_captions.verification.probes import Finding, Probes
from lmms_eval_captions.verification.record import BenchmarkRecord, JudgeRecord

UNREADABLE: Final = "unreadable"
_SEEDS: Final = range(1_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification."""

    endpoints: Sequence[str]
    findings: Sequence[Finding]
    benchmarks: Sequence[Compared]
    record: JudgeRecord
    n_calls: int
    usd: float | None
    state: State
    reasons: Sequence[str]
    """Why the judge failed, or why nothing was decided."""


def verify(
    subjects: Sequence[Subject],
    settings: JudgeSettings,
    *,
    against: JudgeRecord | None,
    max_cost_usd: float | None,
) -> Verified:
    """Probe the endpoint, ask about all anchors of benchmarks with one judge, and decide.

    ``against`` is the record of the trusted judge; ``None`` compares with the right verdicts.
    """
    expected = {each.name: _expected(each, against) for each in subjects}
    config = subjects[0].config
    probes = Probes(config, settings, random.Random(secrets.randbits(64)))  # noqa: S311 - no secret # nosec B311
    probed = probes.findings()
    findings = [_next_to(against, each) for each in probed]
    # Replies of an interrupted verification are used again, those of a finished one never.
    name = slug("+".join([config.model, *settings.endpoint.names]))
    folder = settings.cache / "judge_verify" / name
    seed = _seed(folder)
    with _engine(settings, folder / str(seed), max_cost_usd) as engine:
        verdicts = {each.name: _ask(engine, each, seed) for each in subjects}
        totals = engine.totals()
    shutil.rmtree(folder, ignore_errors=True)
    compared = [compare(name, verdicts[name], expected[name]) for name in verdicts]
    state, reasons = conclude(findings, compared, WITH_RECORD if against else WITH_TRUTH)
    records = {each.name: BenchmarkRecord(each.prompts, verdicts[each.name]) for each in subjects}
    failed_probes = [each.name for each in probed if each.state == "failed"]
    made = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Verified(
        endpoints=settings.endpoint.names,
        findings=findings,
        benchmarks=compared,
        record=JudgeRecord(config.model, made, records, failed_probes),
        n_calls=totals.calls + probes.n_requests,
        usd=totals.usd,
        state=state,
        reasons=reasons,
    )


def verdict_of(subject: Subject, judgement: Any) -> str | None:  # noqa: ANN401 - the benchmark's
    """Return the verdict of a judgement; ``None`` if no reply came."""
    unread = UNREADABLE if judgement.reply else None
    return subject.anchors.verdict(judgement) or unread


def _next_to(against: JudgeRecord | None, finding: Finding) -> Finding:
    """A failed probe as a note if it failed for the trusted judge too."""
    if against is None or finding.state != "failed" or finding.name not in against.failed_probes:
        return finding
    return replace(finding, state="note", text=f"{finding.text} (as in the record)")


def _expected(subject: Subject, against: JudgeRecord | None) -> Mapping[str, str]:
    if against is None:
        return subject.right_verdicts()
    recorded = against.benchmarks.get(subject.name)
    if recorded is None:
        raise DataError(
            f"--against: expected a record of {subject.name}, the file has "
            f"{', '.join(against.benchmarks) or 'none'}; choose of these with --tasks, or write a "
            "new record with -o FILE"
        )
    if recorded.prompts != subject.prompts:
        raise DataError(
            f"--against: the record of {subject.name} was made with other prompts or anchors "
            f"({recorded.prompts}, now {subject.prompts}); write a new one with -o FILE"
        )
    return recorded.verdicts


def _seed(folder: Path) -> int:
    """Seed of an interrupted verification, else a new one.

    At temperature 0 it changes no verdict, but a cache of requests of an earlier verification does
    not hold these.
    """
    earlier = [int(path.name) for path in folder.glob("*") if path.name.isdecimal()]
    return earlier[0] if earlier else _SEEDS[secrets.randbelow(len(_SEEDS))]


def _engine(settings: JudgeSettings, store: Path, max_cost_usd: float | None) -> Engine:
    config = engine_config(replace(settings, mode="now"))
    # A repeated request is sampled, so that its verdict varies.
    own = replace(config, store=store, max_cost_usd=max_cost_usd, n_rereads=0)
    return Engine(replace(own, progress=sys.stderr.isatty()))


def _ask(engine: Engine, subject: Subject, seed: int) -> dict[str, str]:
    """Verdicts on a benchmark's anchors that had a reply."""
    futures = {fact.name: engine.submit([subject.chain(fact, seed)]) for fact in planted_facts()}
    verdicts = {}
    for name, future in futures.items():
        ((judgement,),) = future.result()
        if verdict := verdict_of(subject, judgement):
            verdicts[name] = verdict
    return verdicts
