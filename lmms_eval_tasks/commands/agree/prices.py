"""What a judge cost, by the judging documents of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lmms_eval_captions.lmms_eval_tasks.commands.agree.findings import Price
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults


def price_of(runs: Iterable[RunResults]) -> Price:
    """What some runs cost together, with all of their tasks.

    Args:
        runs: Of one judge.
    """
    judging = [run.judging.get("judging") for run in runs]
    totals = [each if isinstance(each, Mapping) else {} for each in judging]
    dollars = [each.get("usd") for each in totals]
    known = [float(usd) for usd in dollars if isinstance(usd, int | float)]
    stored = [each.get("from_store") for each in totals]
    return Price(
        usd=sum(known) if known and len(known) == len(dollars) else None,
        n_calls=sum(int(each.get("calls", 0)) for each in totals),
        n_from_store=sum(sum(each.values()) for each in stored if isinstance(each, Mapping)),
    )
