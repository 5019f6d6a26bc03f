"""Scores, unscored questions and signatures of tasks, as lmms-eval prints and saves them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import isnan, nan
from statistics import fmean
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.judging.doubts import doubts_of, suspicious
from lmms_eval_captions.lmms_eval_tasks.judging.reasons import reasons_of, why_unscored
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results.intervals import by_run, scores_of
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import weighted
from lmms_eval_captions.lmms_eval_tasks.signature import (
    ASKED,
    CAPTIONS,
    DISTRIBUTION,
    DOUBTS,
    PRECISION,
    QUESTIONS,
    SUSPICIOUS,
    Share,
    Signature,
    digest_of_all,
    join_fields,
    package_version,
    selection_of,
)

_SHOWN: Final = 5
NOT_JUDGED: Final = "no captions were judged"


def score_of(benchmark: Benchmark[Any, Any], name: str, records: Sequence[CaptionRecord]) -> float:
    """Return a metric over captions, mean over judge runs.

    ``nan``, with the reason logged once in a run, if too much is unscored or if the metric cannot
    be computed here.
    """
    benchmark, (records,) = weighted(benchmark, [records])
    metric = benchmark.metrics[name]
    reason = metric.unavailable(records)
    if reason is not None:
        if THIS_RUN.is_new(f"{name}: {reason}"):
            logger.info(f"{name} is not computed (N/A), all other metrics stand: {reason}")
        return nan
    if is_nan(name, records):
        return nan
    scores = scores_of(metric, by_run(name, records), records)
    if any(map(isnan, scores)):
        logger.warning(f"{name} has no value | {signature_of(records)}")
        return nan
    return fmean(scores)


def values_of(
    benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord], *, max_unscored: float
) -> dict[str, float]:
    """Return each of a benchmark's metrics over captions, as :func:`score_of`, and log nothing.

    All questions of these captions were asked.
    """
    n_questions, n_unscored = _counts(records)
    values = dict.fromkeys(benchmark.metrics, nan)
    if n_questions and not Share(n_unscored, n_questions).exceeds(max_unscored):
        for name, metric in benchmark.metrics.items():
            if metric.unavailable(records) is None:
                # A run without a value leaves the metric without one.
                values[name] = fmean(scores_of(metric, by_run(name, records), records))
    return values


def total_unscored(records: Sequence[CaptionRecord]) -> int:
    """Count questions without a verdict over all captions and judge runs, and log the reasons."""
    task, n_captions = records[0].task if records else "", len(records)
    n_questions, n_unscored = _counts(records)
    n_dropped = sum(record.n_dropped for record in records)
    if n_dropped:
        logger.warning(
            f"{task}: {n_dropped:,} of {n_captions:,} captions are not there and are left out "
            f"(missing=drop): the scores are those of the other {n_captions - n_dropped:,}"
        )
    empty = [record for record in records if record.n_empty]
    if empty:
        shown = ", ".join(record.video_id for record in empty[:_SHOWN])
        more = " and more" if len(empty) > _SHOWN else ""
        count_as = "count as captions that say nothing"
        if any(record.n_unscored for record in empty):
            count_as = "are unscored: the benchmark has no verdict for a caption that says nothing"
        logger.warning(
            f"{task}: {len(empty)} of {n_captions} captions are empty, for {shown}{more}; they "
            f"were not sent and {count_as}"
        )
    if n_unscored and THIS_RUN.is_new(_no_score(records)):
        why = why_unscored(*reasons_of(records))
        logger.warning(f"{task}: {n_unscored} of {n_questions} questions are unscored. {why}")
    return n_unscored


def is_nan(metric: str, records: Sequence[CaptionRecord]) -> bool:
    """Return whether too much is unscored for a score, and log the reasons once per task."""
    if has_score(records):
        return False
    if not THIS_RUN.is_new(_no_score(records)):
        return True
    n_questions, n_unscored = _counts(records)
    task = records[0].task if records else "no caption:"
    why = (
        f"{n_unscored} of {n_questions} questions are unscored, at most {max_unscored():.2%} may "
        f"be (LMMS_CAPTIONS_MAX_UNSCORED). {why_unscored(*reasons_of(records))}"
    )
    if records and not n_questions:
        why = f"there is no question about any of the {len(records)} captions"
        if all(record.n_dropped for record in records):
            why = (
                "there is no caption (missing=drop): name a file with captions of these videos; "
                f"none is there of the {len(records)} captions"
            )
    logger.error(f"{task} {metric} is nan, and so are its other metrics: {why}")
    return True


def _no_score(records: Sequence[CaptionRecord]) -> str:
    """Return the key of a message that is logged once per task, whichever metric comes first."""
    task = records[0].task if records else ""
    return f"{task}: {len(records)} captions, {_counts(records)}, {reasons_of(records)}"


def has_score(records: Sequence[CaptionRecord]) -> bool:
    """Return whether enough questions have a verdict for a score."""
    n_questions, n_unscored = _counts(records)
    return n_questions > 0 and not Share(n_unscored, n_questions).exceeds(max_unscored())


def max_unscored() -> float:
    """Return the largest share of unscored questions that still gives a score, in [0, 1]."""
    try:
        return SESSION.settings().max_unscored
    except SettingsError:
        return 0.0  # every record holds the reason


def signature_of(records: Sequence[CaptionRecord], args: argparse.Namespace | None = None) -> str:
    """Return the signature of a task from its captions' records and lmms-eval's command line."""
    if not records:
        return NOT_JUDGED
    extras = extras_of(records)
    captions = extras.pop(CAPTIONS, None)
    if PRECISION in extras:
        n_all = sum(record.n_population or record.n_questions for record in records)
        # Nothing was asked about captions that are empty or missing.
        n_asked = sum(record.n_questions for record in records if record.n_population)
        extras[ASKED] = Share(n_asked, n_all).words
    first, n_captions = records[0], len(records)
    fields = {
        "judge": " + ".join(sorted({record.judge for record in records})),
        "runs": str(first.runs),
        "protocol": str(first.protocol),
        **extras,
    }
    for name, counted in (("dropped", "n_dropped"), ("empty", "n_empty")):
        n = sum(getattr(record, counted) for record in records)
        if n:
            fields[name] = str(Share(n, n_captions))
    n_questions, n_unscored = _counts(records)
    fields["unscored"] = str(Share(n_unscored, n_questions))
    if captions is not None:
        fields[CAPTIONS] = captions
    if questions := [record.questions for record in records if record.questions]:
        fields[QUESTIONS] = digest_of_all(questions)
    fields |= selection_of(args)
    if doubts := doubts_of(records):
        fields[DOUBTS] = "+".join(sorted(doubts))
    n_suspicious, _ = suspicious(records)
    if n_suspicious:
        fields[SUSPICIOUS] = str(Share(n_suspicious, n_captions))
    fields[DISTRIBUTION] = package_version()
    return str(Signature(first.task, fields))


def sum_over_tasks(values: Sequence[float], _sizes: Sequence[int], _weighted: bool) -> float:
    """Return the sum over the tasks of a group, as its aggregation."""
    return sum(values)


def _counts(records: Sequence[CaptionRecord]) -> tuple[int, int]:
    """Count questions times judge runs, and those without a verdict."""
    n_questions = sum(record.n_questions for record in records)
    return n_questions, sum(record.n_unscored for record in records)


def extras_of(records: Sequence[CaptionRecord]) -> dict[str, str]:
    """Return the further fields of the signature; values that differ by caption are joined."""
    values: dict[str, set[str]] = {}
    for record in records:
        for name, value in record.extras.items():
            values.setdefault(name, set()).add(value)
    return join_fields(values)
