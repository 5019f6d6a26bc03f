"""A line for each judge: what to make of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan

from lmms_eval_captions.analysis.agree.findings import (
    Agreement,
    JudgeFindings,
    Leniency,
    PairFindings,
    Price,
    Ranking,
)
from lmms_eval_captions.metrics.intervals import Interval


def conclusions_of(judges: Sequence[JudgeFindings], pairs: Sequence[PairFindings]) -> Iterator[str]:
    """What each judge is beside the reference, which is the first.

    Args:
        judges: All of them.
        pairs: The reference with others.
    """
    by_name = {judge.name: judge for judge in judges}
    compared = {pair.other: pair for pair in pairs}
    for judge in judges:
        own = [_of_own_runs(judge.own_runs[0], judge.n_runs)] if judge.own_runs else []
        if judge is judges[0]:
            what = "the reference" if pairs else ""
            yield _line(judge.name, [*filter(None, [what]), *own])
        elif judge.name in compared:
            pair = compared[judge.name]
            price = _of_prices(judge.price, by_name[pair.reference].price)
            yield _line(judge.name, [*_of_pair(pair), *price, *own])
        else:
            yield _line(judge.name, ["judged no caption that the reference judged", *own])


def shown_interval(interval: Interval | None) -> str:
    """A coefficient with its ends.

    >>> from lmms_eval_captions.metrics.intervals import Interval
    >>> found = Interval(value=.5, low=.4, high=.6, standard_error=.1, n_videos=9, method="")
    >>> shown_interval(found)
    '0.50 [0.40, 0.60]'
    """
    if interval is None or isnan(interval.value):
        return "-"
    if interval.low is None or interval.high is None:
        return f"{interval.value:.2f}"
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def _line(name: str, parts: Sequence[str]) -> str:
    return f"{name}: {'; '.join(parts) or 'nothing to compare'}"


def _of_pair(pair: PairFindings) -> Iterator[str]:
    if not pair.n_captions:
        yield f"no caption that {pair.reference} judged, too, is the same word for word"
        return
    yield from _of_agreement(pair)
    yield from _of_leniency(pair.leniency)
    if pair.ranking is not None:
        yield _of_ranking(pair.ranking)


def _of_agreement(pair: PairFindings) -> Iterator[str]:
    agreement = next(iter(pair.agreements), None)
    if agreement is None:
        return
    name = "alpha" if agreement.kappa is None else "kappa"
    found = agreement.alpha if agreement.kappa is None else agreement.kappa
    ac1 = "" if agreement.ac1 is None else f" (AC1 {agreement.ac1.value:.2f})"
    if isnan(found.value):
        yield f"agrees with {pair.reference} in {_percent(agreement.same)} of the verdicts{ac1}"
    else:
        yield f"agrees with {pair.reference} to {name} {shown_interval(found)}{ac1}"


def _of_leniency(rows: Sequence[Leniency]) -> Iterator[str]:
    row = next(iter(rows), None)
    if row is None:
        return
    found = row.difference
    if found.low is None and found.p_value == 1.0:
        yield f"as strict ({row.metric} {found.note})"
        return
    if found.low is None or found.high is None:
        yield f"{found.difference:+.2f} of {row.metric}, no interval ({found.note})"
        return
    ends = f"{row.metric} {found.difference:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"
    if found.low <= 0 <= found.high:
        yield f"as strict ({ends})"
    else:
        yield f"{'more lenient' if found.difference > 0 else 'stricter'} ({ends})"


def _of_ranking(ranking: Ranking) -> str:
    n_captioners = len(ranking.reference)
    if not ranking.swaps:
        ties = "" if ranking.tau_b == 1 else ", ties apart"
        return f"ranks the {n_captioners} captioners the same{ties}"
    n_pairs = n_captioners * (n_captioners - 1) // 2
    n_real = sum(swap.is_real for swap in ranking.swaps)
    first = ranking.swaps[0].captioners
    example = (
        f", such as {first[0]} and {first[1]}"
        if len(ranking.swaps) > 1
        else f", {first[0]} and {first[1]}"
    )
    return (
        f"orders {len(ranking.swaps)} of {n_pairs} pairs of captioners the other way round"
        f"{example} ({n_real} beyond the noise; tau-b {ranking.tau_b:.2f})"
    )


def _of_own_runs(agreement: Agreement, n_runs: int) -> str:
    return (
        f"says the same in all {n_runs} of its runs in {_percent(agreement.same)} of the questions "
        f"(alpha {shown_interval(agreement.alpha)})"
    )


def _of_prices(price: Price, reference: Price) -> Iterator[str]:
    own, other = price.usd_per_1000_verdicts, reference.usd_per_1000_verdicts
    if own is None or other is None:
        yield "its price beside the reference's is not known"
    elif own == 0 or other == 0:
        yield f"${own:.2f} for 1,000 verdicts, the reference ${other:.2f}"
    else:
        yield f"{own / other:.2g} of the price"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
