"""What a judge cost, by the judging documents of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lmms_eval_captions.analysis.agree.findings import Price
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults


def price_of(runs: Iterable[RunResults]) -> Price:
    """What some runs cost together, with all of their tasks.

    Args:
        runs: Of one judge.
    """
    documents = [run.judging for run in runs]
    totals = [_object(document, "judging") for document in documents]
    dollars = [each.get("usd") for each in totals]
    known = [float(usd) for usd in dollars if isinstance(usd, int | float)]
    usd = sum(known) if len(known) == len(dollars) else None
    n_calls = sum(_count(each, "calls") for each in totals)
    n_stored = sum(
        _count(stored, endpoint)
        for stored in (_object(each, "from_store") for each in totals)
        for endpoint in stored
    )
    n_unpaid = n_stored + sum(_count(each, "shared") for each in totals)
    n_verdicts = sum(map(_n_verdicts, documents))
    is_priced = usd is not None and n_calls and n_verdicts
    return Price(
        usd=usd,
        n_calls=n_calls,
        n_unpaid=n_unpaid,
        usd_per_1000_verdicts=1000 * usd / n_calls * (n_calls + n_unpaid) / n_verdicts
        if is_priced and usd is not None
        else None,
    )


def _n_verdicts(document: Mapping[str, object]) -> int:
    """Questions times judge runs of all tasks of a run."""
    tasks = _object(document, "tasks")
    entries = [_object(tasks, name) for name in tasks]
    # Groups count their tasks' questions again.
    return sum(_count(_object(e, "unscored"), "of") for e in entries if not e.get("tasks"))


def _object(document: Mapping[str, object], name: str) -> Mapping[str, object]:
    member = document.get(name)
    return member if isinstance(member, Mapping) else {}


def _count(document: Mapping[str, object], name: str) -> int:
    count = document.get(name)
    return count if isinstance(count, int) else 0
