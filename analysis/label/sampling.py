"""Judged pairs of a question and a caption, and samples of them that people label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.task_table import TaskTable

FEATURES: Final = {"captioner": "captioner", "task": "task", "verdict": "first_verdict"}
"""Columns by the names, other than sections of the breakdown, that samples can be stratified by."""


def judged_pairs(captioner: Captioner, task: str) -> tuple[TaskTable, pd.DataFrame]:
    """Return a task's verdicts and its pairs with a verdict in at least one judge run.

    Pairs have the table's columns and ``captioner``, ``task`` and ``first_verdict``. A column of
    values holds a tuple per judge run with a verdict, each what metrics read of the pair; missing
    if no run has one.
    """
    (table,) = captioner.verdicts(task, sampled=False).tables
    asked, benchmark = table.asked(), table.benchmark
    keys = ["caption", "question_index"]
    pairs = asked.drop_duplicates(keys).set_index(keys, drop=False)
    for metric, column in table.head["values"].items():
        is_single = benchmark.metrics[metric].n_values == 1
        values = asked[column].map(lambda value, is_single=is_single: _tuple(value, is_single))
        pairs[column] = values.dropna().groupby([asked[key] for key in keys]).agg(list)
    headline = table.head["values"][benchmark.headline]
    pairs = pairs[pairs[headline].notna()].reset_index(drop=True)
    return table, pairs.assign(
        captioner=captioner.name,
        task=task,
        question=pairs["question"].fillna(""),
        question_index=pairs["question_index"].astype(int),
        first_verdict=[runs[0][0] for runs in pairs[headline]],
    )


def _tuple(value: Any, is_single: bool) -> tuple[object, ...] | None:  # noqa: ANN401
    if is_single:
        return None if value is None else (value,)
    return None if not value or None in value else tuple(value)


def strata_of(pairs: pd.DataFrame, by: Sequence[str]) -> list[str]:
    """Return each pair's stratum: its values of what the sample is stratified by."""
    if not by:
        return [""] * len(pairs)
    columns = [FEATURES.get(name, name) for name in by]
    values = pairs.reindex(columns=columns).astype(object)
    rows = values.where(values.notna(), None).itertuples(index=False, name=None)
    return [" / ".join(map(str, row)) for row in rows]


def draw(
    strata: Sequence[str], n: int, seed: int, by: Sequence[str] = ()
) -> dict[int, dict[str, object]]:
    """Draw up to n pairs by their strata.

    Strata get as equal shares as their sizes allow. A person who stops early has labelled a random
    sample, too. The same seed draws the same sample.

    Returns:
        The pairs' indices in random order, each to the design of the sample as its label carries
        it, with ``by``, the names that the sample is stratified by.

    >>> from collections import Counter
    >>> strata = ["a"] * 100 + ["b"] * 3 + ["c"] * 50
    >>> sorted(Counter(strata[index] for index in draw(strata, 21, seed=0)).items())
    [('a', 9), ('b', 3), ('c', 9)]
    """
    rng = np.random.default_rng(seed)
    indices = pd.Series(strata).groupby(strata).indices
    sizes = {name: len(own) for name, own in indices.items()}
    counts = _shares(sizes, n)
    chosen = [i for name, own in indices.items() for i in rng.permutation(own)[: counts[name]]]
    design = {
        "kind": "stratified" if by else "random",
        "by": list(by),
        "seed": seed,
        "n_population": len(strata),
        "n_drawn": len(chosen),
    }
    return {
        int(index): {
            **design,
            "stratum": strata[index],
            "stratum_size": sizes[strata[index]],
            "stratum_drawn": counts[strata[index]],
        }
        for index in rng.permutation(chosen)
    }


def _shares(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    drawn = dict.fromkeys(sizes, 0)
    left = min(n, sum(sizes.values()))
    while left:
        open_strata = [name for name, size in sizes.items() if drawn[name] < size]
        share = max(left // len(open_strata), 1)
        for name in open_strata:
            n_taken = min(share, sizes[name] - drawn[name], left)
            drawn[name] += n_taken
            left -= n_taken
    return drawn
