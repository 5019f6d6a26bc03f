"""Judged pairs of a question and a caption, and samples of them that people label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.task_table import TaskTable

if TYPE_CHECKING:
    import pandas as pd

FEATURES: Final = {"captioner": "captioner", "task": "task", "verdict": "first_verdict"}
"""Columns by the names, other than sections of the breakdown, that samples can be stratified by."""


def judged_pairs(captioner: Captioner, task: str) -> tuple[TaskTable, pd.DataFrame]:
    """Return a task's verdicts and its pairs with a verdict in at least one judge run.

    Returns:
        The task's table, and a row per pair with its columns and ``captioner``, ``task`` and
        ``first_verdict``. A column of values holds a tuple per judge run with a verdict, each what
        metrics read of the pair; missing if no run has one.

    Raises:
        DataError: If the verdicts cannot be read, or are of a sample of the questions.
    """
    (table,) = captioner.verdicts(task, sampled=False).tables
    asked, benchmark = table.asked(), table.benchmark
    keys = ["caption", "question_index"]
    pairs = asked.drop_duplicates(keys).set_index(keys, drop=False)
    columns = {column: name for name, column in table.head["values"].items()}
    for column, metric in columns.items():
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
    columns = [FEATURES.get(name, name) for name in by]
    shown = [pairs[name].tolist() if name in pairs else [None] * len(pairs) for name in columns]
    if not shown:
        return [""] * len(pairs)
    return [
        " / ".join(str(None if value != value else value) for value in values)
        for values in zip(*shown, strict=True)
    ]


def allocate(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Return how many are drawn from each stratum: as equal as the strata's sizes allow.

    Args:
        sizes: Stratum to its number of pairs, >= 1.
        n: How many to draw, at most all.

    >>> allocate({"a": 100, "b": 3, "c": 50}, 21)
    {'a': 9, 'b': 3, 'c': 9}
    """
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


def draw(strata: Sequence[str], n: int, seed: int) -> list[int]:
    """Draw a sample; return its indices in random order.

    A person who stops early has labelled a random sample, too.

    Args:
        strata: Stratum of each pair.
        n: How many to draw, at most all.
        seed: The same seed draws the same sample.
    """
    rng = np.random.default_rng(seed)
    indices: dict[str, list[int]] = {name: [] for name in sorted(set(strata))}
    for index, name in enumerate(strata):
        indices[name].append(index)
    counts = allocate({name: len(own) for name, own in indices.items()}, n)
    chosen = [i for name, own in indices.items() for i in rng.permutation(own)[: counts[name]]]
    return [int(index) for index in rng.permutation(chosen)]


def designs(
    strata: Sequence[str], drawn: Sequence[int], by: Sequence[str], seed: int
) -> list[dict[str, object]]:
    """Return the design of a sample as each of its labels carries it."""
    sizes, counts = Counter(strata), Counter(strata[index] for index in drawn)
    return [
        {
            "kind": "stratified" if by else "random",
            "by": list(by),
            "seed": seed,
            "n_population": len(strata),
            "n_drawn": len(drawn),
            "stratum": strata[index],
            "stratum_size": sizes[strata[index]],
            "stratum_drawn": counts[strata[index]],
        }
        for index in drawn
    ]
