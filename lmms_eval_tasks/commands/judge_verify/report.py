"""A verification as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.comparing import Compared
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.outcome import (
    LEAST_RIGHT,
    BenchmarkOutcome,
    Verified,
)
from lmms_eval_captions.lmms_eval_tasks.table_formats import Part, Table, as_text
from lmms_eval_captions.lmms_eval_tasks.verified_judges import VerifyState

EXIT_CODES: Final[dict[VerifyState, int]] = {"passed": 0, "failed": 1, "undecided": 3}
_MARKS: Final = {"ok": "ok", "differs": "DIFFERS", "note": "note", "unknown": "not known"}


def text_of(verified: Verified) -> str:
    """What was found out, the verdict in the last line."""
    parts = [_findings(verified), _anchors(verified), _published(verified)]
    return f"{as_text(parts)}\n{verified.last_line}\n"


def json_of(verified: Verified) -> str:
    """The same as one object of JSON."""
    document = {
        "verdict": verified.state,
        "why": verified.last_line,
        "model": verified.model,
        "endpoints": list(verified.endpoints),
        "benchmarks": {each.name: _benchmark(each) for each in verified.benchmarks},
        "findings": [finding.to_json() for finding in verified.findings],
        "calls": verified.n_calls,
        "from_store": verified.n_stored,
        "usd": verified.usd,
    }
    return f"{json.dumps(document, indent=1, ensure_ascii=False)}\n"


def _benchmark(outcome: BenchmarkOutcome) -> dict[str, object]:
    right = outcome.right
    return {
        "state": outcome.state,
        "fingerprint": outcome.fingerprint,
        "right": right.n,
        "anchors": right.of,
        "right_ci_low": right.low if right.of else None,
        "right_ci_high": right.high if right.of else None,
        "missing": outcome.n_missing,
        "wrong_by_kind": dict(outcome.wrong_by_kind),
        "against": _compared(outcome.against),
        "against_record": outcome.trusted or None,
        "recorded": _compared(outcome.recorded),
        "recorded_judge": outcome.recorded_judge or None,
        "recorded_left_out": outcome.n_open,
        "published": [
            {"numbers": row.numbers, "judge": row.judge, "source": row.source}
            for row in outcome.published
        ],
    }


def _compared(compared: Compared | None) -> dict[str, object] | None:
    if compared is None:
        return None
    share = compared.agreement
    return {
        "state": compared.state,
        "items": len(compared.pairs),
        "different": compared.n_different,
        "agreement_ci_low": share.low if share.of else None,
        "agreement_ci_high": share.high if share.of else None,
        "missing": compared.n_missing,
        "examples": compared.examples,
    }


def _findings(verified: Verified) -> Part:
    rows = [[_MARKS[each.state], each.name, each.evidence] for each in verified.findings]
    advice = [
        f"{each.name}: {each.advice}."
        for each in verified.findings
        if each.advice and each.state in ("differs", "note")
    ]
    where = ", ".join(verified.endpoints)
    return Part(
        f"{verified.model} at {where}",
        [f"{mark}: {name}: {evidence}" for mark, name, evidence in rows],
        remarks=advice,
    )


def _anchors(verified: Verified) -> Part:
    rows = [
        [each.name, what, items, differ, interval]
        for each in verified.benchmarks
        for what, items, differ, interval in _rows(each)
    ]
    table = Table(("benchmark", "beside", "items", "differ", "the same, 95%"), rows, n_left=2)
    return Part("Verdicts", tables=[table] if rows else [], remarks=list(_remarks(verified)))


def _rows(outcome: BenchmarkOutcome) -> Iterator[tuple[str, str, str, str]]:
    right = outcome.right
    if right.of:
        yield (
            "how anchors are built",
            str(right.of),
            str(right.of - right.n),
            f"{right.share:.1%} [{right.low:.1%}, {right.high:.1%}]",
        )
    for what, compared in (("the record", outcome.against), ("recorded run", outcome.recorded)):
        if compared is not None and compared.pairs:
            share = compared.agreement
            yield (
                what,
                str(len(compared.pairs)),
                str(compared.n_different),
                f"{share.share:.1%} [{share.low:.1%}, {share.high:.1%}]",
            )


def _remarks(verified: Verified) -> Iterator[str]:
    for each in verified.benchmarks:
        if each.trusted:
            yield f"{each.name}: the record is of {each.trusted}."
        if each.recorded_judge:
            left_out = (
                f"; {each.n_open} questions on which its own judge runs do not agree are left out"
                if each.n_open
                else ""
            )
            yield f"{each.name}: the recorded run was judged by {each.recorded_judge}{left_out}."
        for compared in (each.against, each.recorded):
            for example in [] if compared is None else compared.examples:
                yield f"{each.name}: {example}."
        if each.is_bad and each.against is not None:
            yield (
                f"{each.name}: it judges only {each.right.share:.0%} of the anchors as they are "
                f"built, less than any judge that can be used ({LEAST_RIGHT:.0%})."
            )
        if each.wrong_by_kind:
            kinds = ", ".join(f"{kind} {n}" for kind, n in each.wrong_by_kind.items())
            yield f"{each.name}: judged otherwise than built, by kind of fact: {kinds}."
    if verified.goes_on and verified.state == "failed":
        yield "Some replies are from before the interruption: believe what --anew says as well."
    cost = "" if verified.usd is None else f", ${verified.usd:.2f}"
    yield (f"{verified.n_calls:,} requests{cost}; {verified.n_stored:,} replies were in the store.")


def _published(verified: Verified) -> Part:
    rows = [
        [each.name, row.numbers, row.judge]
        for each in verified.benchmarks
        for row in each.published
    ]
    sentences = [f"{name}: {numbers}: {judge}." for name, numbers, judge in rows]
    return Part("Who judged the published numbers (sources: docs/published-judges.md)", sentences)
