"""Judged captions with verdicts drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

N_CAPTIONS: Final = 150
_AGREEMENTS: Final = ("positive", "negative", "unanswerable")
_OUTCOMES: Final = ("true_positive", "false_positive", "false_negative")
_GRADES: Final = ("correct", "partial", "neutral", "wrong")
_NUMBERS: Final = (0.0, 0.4, 0.9, 1.0)
_RATINGS: Final = (1.0, 2.0, 4.0, 5.0)
_BY_BENCHMARK: Final[dict[str, tuple[tuple[str, ...], Sequence[Any]]]] = {
    "vcapsbench": (("ar", "ir", "cr"), _AGREEMENTS),
    "capquiz": (("capp", "capr", "capf1"), _OUTCOMES),
    "vidcapbench": (("acc", "pre", "cov", "con"), _GRADES),
    "vdc_rouge": (("vdc_rouge",), _NUMBERS),
    "msvd_eval": (("accuracy", "completeness", "conciseness", "relevance", "avg"), _NUMBERS),
    "own_gveval": (("accuracy", "completeness", "conciseness", "relevance", "avg"), _NUMBERS),
    "own_rating": (("trustworthiness", "coverage", "overall"), _RATINGS),
}
_VALUES: Final[dict[tuple[str, str], Sequence[Any]]] = {
    ("vdc", "vdc_acc"): ("yes", "no"),
    ("vdc", "vdc_score"): _NUMBERS,
    ("vdc_vdd", "vdd_acc"): ("yes", "no"),
    ("vdc_vdd", "vdd_score"): _NUMBERS,
    ("vdc_classic", "rouge_l"): _NUMBERS,
    ("vdc_classic", "cider"): _NUMBERS,
    **{
        (name, metric): values
        for name, (metrics, values) in _BY_BENCHMARK.items()
        for metric in metrics
    },
}


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


_COUNTED: Final[dict[tuple[str, str], Callable[[np.random.Generator], tuple[float, ...]]]] = {
    ("vdc_classic", "bleu_1"): _bleu_row,
    ("vdc_classic", "bleu_4"): _bleu_row,
    ("vdc_classic", "meteor"): _meteor_row,
}
"""Metrics of sums over captions, which have one row of counts each."""
CASES: Final = [*_VALUES, *_COUNTED]


def drawn(
    name: str, metric: str, *, seed: int, n: int = N_CAPTIONS, n_runs: int = 1, ties: float = 0.1
) -> list[CaptionRecord]:
    """Captions whose questions go together."""
    rng = np.random.default_rng(seed)
    if draw_row := _COUNTED.get((name, metric)):
        rows = [draw_row(rng) for _ in range(n)]
        return [
            _record(f"v{place}", metric, [[None if rng.random() <= ties else row]], {})
            for place, row in enumerate(rows)
        ]
    labels = _VALUES[name, metric]
    n_values = all_benchmarks()[name].metrics[metric].n_values
    records = []
    for place in range(n):
        n_questions = n_values if n_values > 1 else int(rng.integers(2, 12))
        shares = rng.dirichlet(np.full(len(labels), 1.0))
        runs: list[list[Any]] = []
        for _ in range(n_runs):
            verdicts = [labels[i] for i in rng.choice(len(labels), n_questions, p=shares)]
            runs.append([value if rng.random() > ties else None for value in verdicts])
        fields: dict[str, object] = {"n_tokens": int(rng.integers(40, 400))}
        records.append(_record(f"v{place}", metric, runs, fields))
    return records


def _record(
    video: str, metric: str, runs: list[list[Any]], fields: dict[str, object]
) -> CaptionRecord:
    """A judged caption with what one metric reads of it, shape (n_runs, n_values)."""
    return CaptionRecord(
        task="task",
        video_id=video,
        judge="judge",
        runs=len(runs),
        protocol=1,
        extras={},
        n_questions=sum(map(len, runs)),
        n_unscored=sum(value is None for run in runs for value in run),
        values={metric: runs},
        fields=fields,
    )
