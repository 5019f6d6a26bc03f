"""How well the judge judged: what it left unreadable, how often it changed its mind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np

from lmms_eval_captions.analysis.report.head import runs_of
from lmms_eval_captions.analysis.report.rows import flips_of, value_of
from lmms_eval_captions.analysis.report.sources import Sources, View
from lmms_eval_captions.analysis.report.tables import (
    NOTHING,
    Cell,
    Column,
    Table,
    cells,
    share,
)
from lmms_eval_captions.analysis.verdicts.verdicts import Verdicts
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults
from lmms_eval_captions.metrics.agreement import krippendorff_alpha
from lmms_eval_captions.metrics.clusters import clustered_slope

_PER_WORDS = 100
"""Words more that a slope is given for."""


def endpoint_table(sources: Sources) -> Table:
    """What went wrong on the way to the judge, by run."""
    columns = [
        Column("captioner"),
        Column("judge calls", is_number=True),
        Column("attempts that failed"),
        Column("results"),
    ]
    rows = [
        cells(captioner.name, *_attempts(run))
        for captioner in sources.captioners
        for run, _ in runs_of(captioner)
    ]
    return Table("The way to the judge", columns, rows)


def health_table(view: View, names: Sequence[str]) -> Table:
    """The judge on a task or group, a row for each captioner."""
    columns = [
        Column("captioner"),
        Column("judge runs", is_number=True),
        Column("unscored", is_number=True),
        Column("verdicts that differ between runs", is_number=True),
        Column("agreement of runs (Krippendorff)", is_number=True),
        Column(f"{view.benchmark.headline} for {_PER_WORDS} words more [95%]", is_number=True),
    ]
    rows = [
        cells(name, *_row(verdicts))
        for name, verdicts in zip(names, view.verdicts, strict=True)
        if verdicts is not None
    ]
    notes = [
        "Krippendorff's alpha over the verdicts of judge runs: 1 is always the same, 0 chance.",
        "The slope says whether longer captions score higher; errors are clustered by video.",
    ]
    return Table("Judge", columns, rows, notes)


def reason_table(view: View, names: Sequence[str]) -> Table | None:
    """Why questions are unscored; ``None`` where none is."""
    rows = []
    for name, results in zip(names, view.results, strict=True):
        reasons = {} if results is None else results.unscored_reasons
        rows += [[Cell(name), Cell(f"{n:,}"), Cell(reason)] for reason, n in reasons.items()]
    columns = [Column("captioner"), Column("questions", is_number=True), Column("reason")]
    return Table("Why questions are unscored", columns, rows) if rows else None


def _attempts(run: RunResults) -> Iterator[str]:
    totals = run.judging.get("judging")
    totals = totals if isinstance(totals, Mapping) else {}
    retried = totals.get("retried")
    yield f"{totals['calls']:,}" if "calls" in totals else NOTHING
    if isinstance(retried, Mapping):
        yield ", ".join(f"{n:,} {why}" for why, n in retried.items()) or "none"
    else:
        yield NOTHING
    yield run.path.name


def _row(verdicts: Verdicts) -> Iterator[str]:
    benchmark = verdicts.benchmark
    captions = [caption for task in verdicts.tasks for caption in task.captions]
    judged = [caption for caption in captions if not caption.n_dropped]
    n_runs = sorted({len(caption.values.get(benchmark.headline, ())) for caption in judged})
    yield "+".join(map(str, n_runs))
    n_questions = sum(caption.n_questions for caption in captions)
    yield share(sum(caption.n_unscored for caption in captions), n_questions)
    counted = [flips_of(benchmark, caption) for caption in captions]
    n_known = sum(n for _, n in counted)
    yield share(sum(n for n, _ in counted), n_known) if n_known else NOTHING
    yield _alpha(benchmark, captions)
    yield _slope(benchmark, captions)


def _alpha(benchmark: Benchmark[Any, Any], captions: Sequence[CaptionRecord]) -> str:
    """Agreement of judge runs on the headline's verdicts or numbers."""
    metric = benchmark.metrics[benchmark.headline]
    units = [
        column
        for caption in captions
        for runs in (caption.values.get(benchmark.headline, ()),)
        if len(runs) > 1 and benchmark.counts_ahead and len({*map(len, runs)}) == 1
        for column in zip(*runs, strict=True)
    ]
    has_rows = any(isinstance(value, list | tuple) for unit in units for value in unit)
    if not units or has_rows:
        return NOTHING
    alpha = krippendorff_alpha(units, level="nominal" if metric.labels else "interval")
    return "all alike" if isnan(alpha) else f"{alpha:.2f}"


def _slope(benchmark: Benchmark[Any, Any], captions: Sequence[CaptionRecord]) -> str:
    """How much more a caption scores that is longer."""
    points = [
        (caption.n_words / _PER_WORDS, value, caption.video_id)
        for caption in captions
        if caption.n_words is not None
        and (value := value_of(benchmark, benchmark.headline, caption)) is not None
    ]
    if not points:
        return NOTHING
    words, values, videos = zip(*points, strict=True)
    _, clusters = np.unique(np.array(videos), return_inverse=True)
    found = clustered_slope(words, values, clusters)
    if found.low is None or found.high is None:
        return NOTHING
    return f"{found.slope:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"
