"""Findings for programs: JSON, and CSV with a line for each number."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Final

from lmms_eval_captions.analysis.agree.findings import (
    Agreement,
    Findings,
    PairFindings,
)
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL
from lmms_eval_captions.metrics.intervals import Interval
from lmms_eval_captions.metrics.paired import Difference

Line = dict[str, object]

_COLUMNS: Final = (
    "benchmark", "reference", "judge", "section", "group", "metric", "quantity", "value", "low",
    "high", "n", "p", "p_holm", "note",
)  # fmt: skip
_TOGETHER: Final = "all judges together"
_OWN_RUNS: Final = "its own runs"


def as_json(findings: Sequence[Findings]) -> str:
    """Everything that was found out."""
    document = {"benchmarks": [found.to_json() for found in findings]}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def as_csv(findings: Sequence[Findings]) -> str:
    """A line for each number: agreement, leniency, slope and rank correlation, and dollars."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for found in findings:
        for line in _lines(found):
            known = {k: v for k, v in line.items() if not isinstance(v, float) or isfinite(v)}
            writer.writerow({"section": ALL[0], "group": ALL[1], **known,
                             "benchmark": found.benchmark})  # fmt: skip
    return text.getvalue()


def _lines(found: Findings) -> Iterator[Line]:
    for judge in found.judges:
        for agreement in judge.own_runs:
            yield from _of_agreement(agreement, _OWN_RUNS, judge.name)
        for quantity in ("usd", "usd_per_1000_verdicts"):
            dollars = getattr(judge.price, quantity)
            yield {"judge": judge.name, "quantity": quantity, "value": dollars}
    for pair in found.pairs:
        for agreement in pair.agreements:
            yield from _of_agreement(agreement, pair.reference, pair.other)
        yield from _of_pair(pair, found.headline)
    for first, second, agreement in found.others:
        yield from _of_agreement(agreement, first, second)
    for agreement in found.together:
        yield from _of_agreement(agreement, "", _TOGETHER)


def _of_agreement(agreement: Agreement, reference: str, judge: str) -> Iterator[Line]:
    who: Line = {"reference": reference, "judge": judge, "metric": agreement.measure,
                 "n": agreement.n_units}  # fmt: skip
    yield {**who, "quantity": "same", "value": agreement.same}
    for quantity in ("kappa", "ac1", "alpha", "correlation"):
        interval = getattr(agreement, quantity)
        if interval is not None:
            yield {**who, "quantity": quantity, **_ends(interval)}


def _of_pair(pair: PairFindings, headline: str) -> Iterator[Line]:
    who: Line = {"reference": pair.reference, "judge": pair.other}
    for row in pair.leniency:
        of_row: Line = {**who, "section": row.section, "group": row.group, "metric": row.metric,
                        "n": row.n_units}  # fmt: skip
        yield {**of_row, "quantity": "reference", "value": row.reference}
        yield {**of_row, "quantity": "judge", "value": row.other}
        difference = {**_ends(row.difference), "p": row.difference.p_value, "p_holm": row.p_holm}
        yield {**of_row, "quantity": "difference", **difference}
        if row.agreement is not None:
            yield {**of_row, "quantity": "agreement", **_ends(row.agreement)}
    if pair.slope is not None:
        ends = {"value": pair.slope.slope, "low": pair.slope.low, "high": pair.slope.high}
        yield {**who, "metric": headline, "quantity": "points_per_100_words", **ends}
    if pair.ranking is not None:
        yield {**who, "metric": pair.ranking.metric, "quantity": "tau_b",
               "value": pair.ranking.tau_b, "n": len(pair.ranking.reference)}  # fmt: skip


def _ends(found: Interval | Difference) -> Line:
    value = found.value if isinstance(found, Interval) else found.difference
    return {"value": value, "low": found.low, "high": found.high, "note": found.note}
