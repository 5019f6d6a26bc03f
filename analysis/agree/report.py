"""Output of ``agree``: a sentence per judge, then tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any

import pandas as pd

from lmms_eval_captions.analysis.agree.agreement import Document, is_significant, units_of
from lmms_eval_captions.analysis.tables import (
    NONE,
    Part,
    interval_text,
    number,
    p_text,
    plural,
    table,
    with_interval,
)
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL


def parts_of(found: Document) -> list[Part]:
    """Return the report on one benchmark."""
    title = f"{found['benchmark']}: {', '.join(found['tasks'])}"
    sentences = [
        *conclusions(found),
        f"Captions of {', '.join(found['captioners'])}. Intervals are 95%, over videos.",
    ]
    notes = ["Calls and dollars are those of whole runs; the price pays for every reply."]
    overall = Part(title, sentences, [("", _judges(found)), *_agreements(found)], notes)
    return [overall, *map(_pair, found["pairs"])]


def conclusions(found: Document) -> list[str]:
    """Return a sentence per judge."""
    pairs = {pair["other"]: pair for pair in found["pairs"]}
    reference = found["judges"][0]
    lines = []
    for judge in found["judges"]:
        name, words = judge["name"], []
        if judge is reference:
            words += ["the reference"] if pairs else []
        elif name in pairs:
            words += [*_of_pair(pairs[name]), _of_prices(judge["price"], reference["price"])]
        else:
            words.append("judged no caption that the reference judged")
        for own in judge["own_runs"][:1]:
            runs = f"in all {judge['n_runs']} of its runs"
            if own["n_units"]:
                words.append(
                    f"the same {runs} for {_percent(own['same'])} of the questions "
                    f"(alpha {with_interval(own['alpha'])})"
                )
            else:
                words.append(f"no question has a verdict {runs}")
        lines.append(f"{name}: {'; '.join(words) or 'nothing to compare'}")
    return lines


def _of_pair(pair: Document) -> Iterator[str]:
    if not pair["n_captions"]:
        yield f"no caption that {pair['reference']} judged, too, is the same word for word"
        return
    for of in pair["agreements"][:1]:
        name = "alpha" if of["kappa"] is None else "kappa"
        ac1 = "" if of["ac1"] is None else f", AC1 {of['ac1'].value:.2f}"
        shown = f"{name} {with_interval(of[name])}{ac1}"
        yield f"{_percent(of['same'])} the same verdicts as {pair['reference']} ({shown})"
    for row in pair["leniency"][:1]:
        found = row["difference"]
        shown = f"{row['metric']} {with_interval(found, sign='+')}"
        if found.low is None:
            yield f"as strict ({shown})" if found.p_value == 1.0 else f"{shown}, {found.note}"
        elif found.low <= 0 <= found.high:
            yield f"not significantly stricter or more lenient ({shown})"
        else:
            yield f"{'more lenient' if found.difference > 0 else 'stricter'} ({shown})"
    if pair["ranking"] is not None:
        yield _of_ranking(pair["ranking"])


def _of_ranking(ranking: Document) -> str:
    n, swaps = len(ranking["reference"]), ranking["swaps"]
    if not swaps:
        ties = "" if ranking["tau_b"] == 1 else ", except for ties"
        return f"ranks the {n} captioners the same{ties}"
    first, second = swaps[0]["captioners"]
    n_significant = sum(map(is_significant, swaps))
    return (
        f"orders {len(swaps)} of {plural(n * (n - 1) // 2, 'pair')} of captioners the other way "
        f"round, such as {first} and {second} ({n_significant} significantly; tau-b "
        f"{ranking['tau_b']:.2f})"
    )


def _of_prices(price: Document, reference: Document) -> str:
    own, other = (of["usd_per_1000_verdicts"] for of in (price, reference))
    if own is None or other is None:
        return "relative price unknown"
    if own == 0 or other == 0:
        return f"${own:.2f} for 1,000 verdicts, the reference ${other:.2f}"
    return f"{own / other:.2g} of the price"


def _judges(found: Document) -> pd.DataFrame:
    rows = []
    for judge in found["judges"]:
        usd, n_calls, n_unpaid, usd_per_1000 = judge["price"].values()
        shown = [None if dollars is None else f"{dollars:,.2f}" for dollars in (usd, usd_per_1000)]
        counts = [judge["n_captions"], judge["n_runs"], n_calls, n_unpaid]
        rows.append([judge["name"], *counts, *shown])
    header = ["judge", "captions", "runs", "calls", "from cache", "USD", "USD per 1,000 verdicts"]
    return table(header, rows)


def _agreements(found: Document) -> Iterator[tuple[str, pd.DataFrame]]:
    labels, numbers = [], []
    for raters, of in units_of(found):
        who = " / ".join(filter(None, raters))
        if of["ac1"] is None:
            numbers.append([who, of["measure"], of["n_units"], of["alpha"], of["correlation"]])
        else:
            coefficients = (of["kappa"], of["ac1"], of["alpha"])
            labels.append([who, of["n_units"], _percent(of["same"]), *coefficients])
    if labels:
        names = ["verdicts", "n", "same", "Cohen's kappa", "Gwet's AC1", "Krippendorff's alpha"]
        yield "Agreement", table(names, labels)
    if numbers:
        names = ["numbers", "metric", "n", "Krippendorff's alpha", "Pearson's r"]
        yield "Agreement", table(names, numbers)


def _pair(pair: Document) -> Part:
    tables = list(_leniency(pair))
    if pair["confusion"] is not None:
        labels, counts = pair["confusion"]["labels"], pair["confusion"]["counts"]
        rows = [[name, *row] for name, row in zip(labels, counts, strict=True)]
        title = f"Verdicts of {pair['reference']} (rows) and {pair['other']} (columns)"
        tables.append((title, table(["", *labels], rows)))
    if pair["ranking"] is not None:
        ranking, metric = pair["ranking"], pair["ranking"]["metric"]
        ranks = enumerate(zip(ranking["reference"], ranking["other"], strict=True), start=1)
        rows = [[rank, *first, *other] for rank, (first, other) in ranks]
        header = ["rank", pair["reference"], metric, pair["other"], metric]
        tables.append(("Captioners under both judges", table(header, rows)))
    title = f"{pair['other']} compared with {pair['reference']}"
    return Part(title, (), tables, list(_notes(pair)))


def _leniency(pair: Document) -> Iterator[tuple[str, pd.DataFrame]]:
    for section in dict.fromkeys(row["section"] for row in pair["leniency"]):
        rows = [row for row in pair["leniency"] if row["section"] == section]
        is_all = section == ALL[0]
        has_several = len({row["metric"] for row in rows}) > 1
        names = ["metric"] if is_all else ["group", "metric"] if has_several else ["group"]
        shown = [*names, "n_units", "agreement", "reference", "other", "difference"]
        p_values = [row["difference"].p_value if is_all else row["p_holm"] for row in rows]
        cells = [
            [*(row[name] for name in shown), p_text(p_value)]
            for row, p_value in zip(rows, p_values, strict=True)
        ]
        title = "Who is more lenient" if is_all else f"By {section.replace('_', ' ')}"
        header = ["", *names[1:], "n", "agreement", pair["reference"], pair["other"], "difference"]
        yield title, table([*header, "p" if is_all else "p (Holm)"], cells)


def _notes(pair: Document) -> Iterator[str]:
    n = len(pair["captioners"])
    yield (
        f"{plural(pair['n_captions'], 'caption')} of {plural(pair['n_videos'], 'video')} by "
        f"{plural(n, 'captioner')}"
    )
    if pair["left_out"]:
        yield f"left out: {'; '.join(f'{n:,} {what}' for what, n in pair['left_out'].items())}"
    if pair["n_groups_left_out"]:
        yield f"{pair['n_groups_left_out']:,} smaller groups are not shown"
    slope = pair["slope"]
    if slope is not None and isnan(slope["slope"]):
        yield "all captions have the same number of words"
    elif slope is not None:
        shown = interval_text(slope["slope"], slope["low"], slope["high"], sign="+")
        yield (
            f"for 100 words more in a caption, {pair['other']} gives {shown} points more than "
            f"{pair['reference']}"
        )
    if pair["ranking"] is not None:
        yield f"Kendall's tau-b of the captioners' scores: {number(pair['ranking']['tau_b'])}"
        for swap in pair["ranking"]["swaps"]:
            first, second = swap["captioners"]
            sides = [with_interval(swap[name], sign="+") for name in ("reference", "other")]
            yield (
                f"{first} minus {second}: {sides[0]} under {pair['reference']}, {sides[1]} under "
                f"{pair['other']}"
            )


def _percent(share: float | None) -> str:
    return NONE if share is None else f"{share:.1%}"


def documents(several: Sequence[Document]) -> dict[str, Any]:
    """Return the findings as JSON."""
    return {"benchmarks": [{**found, "conclusions": conclusions(found)} for found in several]}
