"""Judged captions with verdicts drawn at random, and what numpy makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

N_CAPTIONS: Final = 150
Array = npt.NDArray[np.float64]
Formula = Callable[[Array], Array]
"""From totals over captions, shape (..., n_columns), to the metric."""

AGREEMENTS: Final = ("positive", "negative", "unanswerable")
OUTCOMES: Final = ("true_positive", "false_positive", "false_negative")
GRADES: Final = ("correct", "partial", "neutral", "wrong")
NUMBERS: Final = (0.0, 0.4, 0.9, 1.0)
RATINGS: Final = (1.0, 2.0, 4.0, 5.0)

# Columns are what was counted of a caption: its verdicts label by label, in the order above; of
# numbers their mean and 1; behind it, its tokens and 1.
LABELLED: Final[dict[tuple[str, str], tuple[tuple[str, ...], Formula]]] = {
    ("vcapsbench", "ar"): (AGREEMENTS, lambda t: 100 * t[..., 0] / t[..., :3].sum(-1)),
    ("vcapsbench", "ir"): (AGREEMENTS, lambda t: 100 * t[..., 1] / t[..., :2].sum(-1)),
    ("vcapsbench", "cr"): (AGREEMENTS, lambda t: 100 * t[..., :2].sum(-1) / t[..., :3].sum(-1)),
    ("capquiz", "capp"): (OUTCOMES, lambda t: 100 * t[..., 0] / t[..., :2].sum(-1)),
    ("capquiz", "capr"): (OUTCOMES, lambda t: 100 * t[..., 0] / t[..., :3].sum(-1)),
    ("capquiz", "capf1"): (
        OUTCOMES,
        lambda t: 200 / (t[..., :2].sum(-1) / t[..., 0] + t[..., :3].sum(-1) / t[..., 0]),
    ),
    ("vidcapbench", "acc"): (GRADES, lambda t: 100 * t[..., 0] / t[..., :4].sum(-1)),
    ("vidcapbench", "pre"): (
        GRADES,
        lambda t: 100 * t[..., :2].sum(-1) / (t[..., :2].sum(-1) + t[..., 3]),
    ),
    ("vidcapbench", "cov"): (GRADES, lambda t: 100 - 100 * t[..., 2] / t[..., :4].sum(-1)),
    ("vidcapbench", "con"): (
        GRADES,
        lambda t: 1e4 * (t[..., 0] / t[..., :4].sum(-1)) / (t[..., 4] / t[..., 5]),
    ),
}
OF_MEANS: Final[dict[tuple[str, str], tuple[tuple[Any, ...], dict[Any, float]]]] = {
    ("vdc", "vdc_acc"): (("yes", "no"), {"yes": 100.0, "no": 0.0}),
    ("vdc", "vdc_score"): (NUMBERS, {number: number for number in NUMBERS}),
    **{
        case: (NUMBERS, {number: 100 * number for number in NUMBERS})
        for case in (
            ("vdc_rouge", "vdc_rouge"),
            ("vdc_classic", "rouge_l"),
            ("vdc_classic", "cider"),
        )
    },
    ("vdc_vdd", "vdd_acc"): (("yes", "no"), {"yes": 100.0, "no": 0.0}),
    ("vdc_vdd", "vdd_score"): (NUMBERS, {number: number for number in NUMBERS}),
    **{
        (benchmark, name): (NUMBERS, {number: number for number in NUMBERS})
        for benchmark in ("msvd_eval", "own_gveval")
        for name in ("accuracy", "completeness", "conciseness", "relevance", "avg")
    },
    **{
        ("own_rating", name): (RATINGS, {number: number for number in RATINGS})
        for name in ("trustworthiness", "coverage", "overall")
    },
}


def _bleu(totals: Array, n: int) -> Array:
    shares = totals[..., 6 : 6 + n] / totals[..., 2 : 2 + n]
    short = np.minimum(0.0, 1.0 - totals[..., 1] / totals[..., 0])
    return np.asarray(100 * np.exp(short) * shares.prod(-1) ** (1 / n))


def _meteor(totals: Array) -> Array:
    stages = np.array([1.0, 0.6, 0.8, 0.6])
    matched = [
        totals[..., 4 + side : 20 : 4] @ stages * 0.75
        + totals[..., 6 + side : 20 : 4] @ stages * 0.25
        for side in (0, 1)
    ]
    words = [
        0.75 * (totals[..., side] - totals[..., 2 + side]) + 0.25 * totals[..., 2 + side]
        for side in (0, 1)
    ]
    mean = 1 / (0.15 * words[0] / matched[0] + 0.85 * words[1] / matched[1])
    fragments = totals[..., 20] / ((totals[..., 21] + totals[..., 22]) / 2)
    return np.asarray(100 * mean * (1 - 0.6 * fragments**0.2))


def _bleu_row(rng: np.random.Generator) -> tuple[float, ...]:
    """Counts of a caption shorter than its reference, one that is good in all orders or in none."""
    n_words, share = int(rng.integers(30, 200)), rng.uniform(0.1, 0.9)
    n_grams = [n_words - order for order in range(4)]
    matched = [int(rng.binomial(n, share ** (order + 1))) for order, n in enumerate(n_grams)]
    return (n_words, int(n_words * rng.uniform(1.1, 1.6)), *n_grams, *matched)


def _meteor_row(rng: np.random.Generator) -> tuple[float, ...]:
    n_words, n_others = (int(n) for n in rng.integers(30, 200, 2))
    n_function, n_other_function = n_words // 3, n_others // 3
    stages = [int(n) for n in rng.integers(0, 8, 16)]
    n_matched = [sum(stages[side::4]) + sum(stages[side + 2 :: 4]) for side in (0, 1)]
    n_chunks = int(rng.integers(3, 20))
    return (n_words, n_others, n_function, n_other_function, *stages, n_chunks, *n_matched)


Row = Callable[[np.random.Generator], tuple[float, ...]]
COUNTED: Final[dict[tuple[str, str], tuple[Row, Formula]]] = {
    ("vdc_classic", "bleu_1"): (_bleu_row, lambda t: _bleu(t, 1)),
    ("vdc_classic", "bleu_4"): (_bleu_row, lambda t: _bleu(t, 4)),
    ("vdc_classic", "meteor"): (_meteor_row, _meteor),
}
"""Metrics of sums over captions, which have one row of counts each."""
CASES: Final = [*LABELLED, *OF_MEANS, *COUNTED]


def drawn(
    name: str, metric: str, *, seed: int, n: int = N_CAPTIONS, n_runs: int = 1, ties: float = 0.1
) -> tuple[list[CaptionRecord], Array]:
    """Captions whose questions go together, and what is counted of each, mean over judge runs."""
    rng = np.random.default_rng(seed)
    if (name, metric) in COUNTED:
        return _counted(name, metric, rng, n=n, ties=ties)
    labelled = (name, metric) in LABELLED
    labels: Sequence[Any] = (LABELLED if labelled else OF_MEANS)[name, metric][0]
    n_values = all_benchmarks()[name].metrics[metric].n_values
    records, rows = [], []
    for place in range(n):
        n_questions = n_values if n_values > 1 else int(rng.integers(2, 12))
        shares = rng.dirichlet(np.full(len(labels), 1.0))
        n_tokens = int(rng.integers(40, 400))
        runs: list[list[Any]] = []
        for _ in range(n_runs):
            drawn = [labels[i] for i in rng.choice(len(labels), n_questions, p=shares)]
            runs.append([value if rng.random() > ties else None for value in drawn])
        records.append(record(f"v{place}", metric, runs, {"n_tokens": n_tokens}))
        if labelled:
            columns = [[run.count(label) for label in labels] for run in runs]
            rows.append([*np.mean(columns, axis=0), n_tokens, 1])
        else:
            of_value = OF_MEANS[name, metric][1]
            values = [[of_value[value] for value in run if value is not None] for run in runs]
            assert n_runs == 1
            rows.append([np.mean(values[0]), 1] if values[0] else [0, 0])
    return records, np.array(rows, dtype=np.float64)


def _counted(
    name: str, metric: str, rng: np.random.Generator, *, n: int, ties: float
) -> tuple[list[CaptionRecord], Array]:
    rows = [COUNTED[name, metric][0](rng) for _ in range(n)]
    missing = [rng.random() <= ties for _ in rows]
    records = [
        record(f"v{place}", metric, [[None if missing[place] else row]], {})
        for place, row in enumerate(rows)
    ]
    kept = np.array(rows, dtype=np.float64)
    kept[missing] = 0.0
    return records, kept


def record(
    video: str, metric: str, runs: list[list[Any]], fields: dict[str, object]
) -> CaptionRecord:
    """A judged caption with what one metric reads of it, shape (n_runs, n_values)."""
    n_questions = sum(map(len, runs))
    n_unscored = sum(value is None for run in runs for value in run)
    return CaptionRecord(
        task="task",
        video_id=video,
        judge="judge",
        runs=len(runs),
        protocol=1,
        extras={},
        n_questions=n_questions,
        n_unscored=n_unscored,
        values={metric: runs},
        fields=fields,
    )


def formula_of(name: str, metric: str) -> Formula:
    """A metric of a benchmark from the totals of what is counted."""
    for formulas in (LABELLED, COUNTED):
        if (name, metric) in formulas:
            return formulas[name, metric][1]
    return lambda totals: totals[..., 0] / totals[..., 1]


def delta_error(formula: Formula, rows: Array) -> float:
    """Cluster-robust error by a numerical gradient."""
    totals, n = rows.sum(0), len(rows)
    steps = np.eye(len(totals)) * 1e-4
    gradient = np.array([(formula(totals + s) - formula(totals - s)) / 2e-4 for s in steps])
    deviations = (rows - rows.mean(0)) @ gradient
    return float(sqrt(n / (n - 1) * (deviations**2).sum()))


def bootstrap_error(formula: Formula, rows: Array, *, times: int = 4000) -> float:
    """Deviation of the metric over captions drawn anew."""
    rng = np.random.default_rng(0)
    weights = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), size=times)
    return float(np.std(formula(weights @ rows)))
