"""What a sample of the questions says of the score that all of them would give, and how surely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.sampling.draw import Drawn, Population, measured
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import (
    Sample,
    contributions,
    examples_of,
    is_mean,
)
from lmms_eval_captions.lmms_eval_tasks.signature import CHEAP, PRECISION

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_FEW: Final = 3
"""Questions of which a correlation is told at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Of the headline of a task or of several together."""

    precision: str
    """Half width that was asked for, in points, as the signature has it."""
    asked: int
    """Questions that were asked, in each judge run."""
    questions: int
    """Questions that there are."""
    value: float | None
    """The headline, ``None`` without a value."""
    half_width: float | None
    """With 95% certainty all questions would give a headline within so many points of it."""
    cheap_judge: str | None = None
    correlation: float | None = None
    """Of the two judges' verdicts on the questions that both were asked, in [-1, 1]; ``None``
    where one says the same of all."""
    trust: float | None = None
    """How much the cheap judge's verdicts count, in [0, 1]."""

    def to_json(self) -> dict[str, object]:
        """For the judging document."""
        return asdict(self)

    @property
    def words(self) -> str:
        """For people, half a sentence.

        >>> Certificate(precision="0.5", asked=15412, questions=96825, value=42.31,
        ...             half_width=0.484).words
        '15,412 of 96,825 questions were asked; all would give 42.31 +- 0.48 (95%)'
        """
        return words_of(self.to_json())


def words_of(certificate: Mapping[str, Any]) -> str:
    """What a certificate of a judging document says, half a sentence."""
    asked, questions = certificate["asked"], certificate["questions"]
    value, half_width = certificate["value"], certificate["half_width"]
    if half_width == 0:
        return f"all {asked:,} questions were asked: fewer would not be precise enough"
    goal = f"{asked:,} of {questions:,} questions were asked"
    if value is None or half_width is None:
        return f"{goal}, and what all would give is not known"
    parts = [f"{goal}; all would give {value:.2f} +- {half_width:.2f} (95%)"]
    if certificate["cheap_judge"] is not None:
        r = certificate["correlation"]
        parts.append(
            f"{certificate['cheap_judge']} was asked all"
            + ("" if r is None else f", its verdicts correlate {r:.2f} with the judge's")
        )
    return "; ".join(parts)


def certificate_of(
    benchmark: Benchmark[Any, Any], sets: Sequence[Sequence[CaptionRecord]]
) -> Certificate | None:
    """That of the plain mean of the headline over tasks; of one task or a pooled group, one set.

    Args:
        benchmark: That of all tasks.
        sets: The captions of each task, of all processes.

    Returns:
        ``None`` where no task was sampled.
    """
    records = [record for of_task in sets for record in of_task]
    extras = [record.extras for record in records if PRECISION in record.extras]
    if not extras:
        return None
    counts = [(_n_asked(benchmark, record), _n_questions(benchmark, record)) for record in records]
    asked, questions = (sum(column) for column in zip(*counts, strict=True))
    value, half_width, lam = _measured(benchmark, sets)
    if any(map(_is_open, records)):
        value = float("nan")
    cheap = extras[0].get(CHEAP)
    return Certificate(
        precision=extras[0][PRECISION],
        asked=asked,
        questions=questions,
        value=value if isfinite(value) else None,
        half_width=half_width if isfinite(value) else None,
        cheap_judge=cheap,
        correlation=None if cheap is None else _correlation(benchmark, records),
        trust=None if cheap is None else lam,
    )


def _n_questions(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> int:
    metric = benchmark.metrics[benchmark.headline]
    runs = record.values[benchmark.headline]
    return len(runs[0]) // metric.n_values if runs else 0


def _n_asked(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> int:
    """Of a caption that is empty or not there nothing was asked."""
    if not record.n_population:
        return 0
    sample = Sample.of(record)
    return _n_questions(benchmark, record) if sample is None else sample.n_asked


def _is_open(record: CaptionRecord) -> bool:
    """Whether some question was not asked and no other stands for it: sampling ended early."""
    sample = Sample.of(record)
    return sample is not None and any(
        not weight and stratum < 0
        for weight, stratum in zip(sample.weights, sample.strata, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """One caption's questions as arrays of shape (n_questions, ...)."""

    pairs: Floats
    weights: Floats
    stands_for: Floats
    control: Floats
    trust: Floats
    strata: list[tuple[int, int] | None]
    """Process and stratum, ``None`` for none."""


def _measured(
    benchmark: Benchmark[Any, Any], sets: Sequence[Sequence[CaptionRecord]]
) -> tuple[float, float, float]:
    """The headline, half the width of its interval, and the trust in the cheap judge."""
    metric = benchmark.metrics[benchmark.headline]
    with_terms = [
        (term, record)
        for term, records in enumerate(sets)
        for record in records
        if _n_questions(benchmark, record)
    ]
    if not with_terms:
        return float("nan"), float("nan"), 0.0
    n_runs = max(len(record.values[benchmark.headline]) for _, record in with_terms)
    captions = [_asked(benchmark, record, n_runs) for _, record in with_terms]
    sizes = [len(caption.weights) for caption in captions]
    terms = np.repeat([term for term, _ in with_terms], sizes)
    trust = np.concatenate([caption.trust for caption in captions])
    population = Population(
        terms=terms,
        tasks=terms,
        captions=np.repeat(np.arange(len(captions)), sizes),
        weights=np.concatenate([caption.weights for caption in captions]),
        has_means=is_mean(metric, examples_of(metric)),
        control=np.concatenate([c.control for c in captions]) if trust.any() else None,
        keys=np.zeros(len(terms)),
        scale=metric.scale,
        reach=metric.span / metric.scale,
    )
    numbers: dict[tuple[int, int], int] = {}
    strata = np.array(
        [
            -1 if stratum is None else numbers.setdefault(stratum, len(numbers))
            for caption in captions
            for stratum in caption.strata
        ]
    )
    drawn = Drawn(
        weights=np.concatenate([caption.stands_for for caption in captions]),
        strata=strata,
        sizes=np.bincount(strata[strata >= 0], minlength=len(numbers)).astype(np.float64),
        lam=trust,
    )
    pairs = np.concatenate([caption.pairs for caption in captions])
    score, error = measured(population, pairs, drawn)
    return score, error.half_width(), float(trust.max())


def _asked(benchmark: Benchmark[Any, Any], record: CaptionRecord, n_runs: int) -> _Asked:
    metric, n = benchmark.metrics[benchmark.headline], _n_questions(benchmark, record)
    sample = Sample.of(record) or Sample(weights=[1.0] * n, strata=[-1] * n, rank=0)
    pairs = np.zeros((n, n_runs, 2))
    for run, values in enumerate(record.values[benchmark.headline]):
        pairs[:, run] = contributions(metric, values)
    has_means = is_mean(metric, examples_of(metric))
    cheap = sample.cheap.get(benchmark.headline)
    return _Asked(
        pairs=pairs,
        weights=np.full(n, 1 / n if has_means else 1.0),
        stands_for=np.array(sample.weights, dtype=np.float64),
        control=np.zeros((n, 2)) if cheap is None else np.array(contributions(metric, cheap[0])),
        trust=np.full(n, 0.0 if cheap is None else sample.lam),
        strata=[None if one < 0 else (sample.rank, one) for one in sample.strata],
    )


def _correlation(benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord]) -> float | None:
    """Of what both judges' verdicts add to the headline, each as many as it stands for."""
    metric, rows = benchmark.metrics[benchmark.headline], []
    for record in records:
        sample = Sample.of(record)
        if sample is None or benchmark.headline not in sample.cheap:
            continue
        judge = contributions(metric, record.values[benchmark.headline][0])
        cheap = contributions(metric, sample.cheap[benchmark.headline][0])
        rows += [
            (weight, one[0], other[0])
            for weight, one, other in zip(sample.weights, judge, cheap, strict=True)
            if weight > 0 and one[1] and other[1]
        ]
    if len(rows) < _FEW:
        return None
    weights, judge_tops, cheap_tops = np.array(rows).T
    covariance = np.cov(judge_tops, cheap_tops, aweights=weights)
    spread = float(np.sqrt(covariance[0, 0] * covariance[1, 1]))
    correlation = float(covariance[0, 1]) / spread if spread > 0 else float("nan")
    return None if isnan(correlation) else correlation
