"""Scores, unscored questions and signatures of tasks, as lmms-eval prints and saves them."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from math import isnan, nan
from statistics import fmean
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.doubts import doubt_names, suspicious
from lmms_eval_captions.lmms_eval_tasks.intervals import by_run, scores_of
from lmms_eval_captions.lmms_eval_tasks.reasons import why_unscored
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Kind
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import weighted
from lmms_eval_captions.lmms_eval_tasks.session import SESSION
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
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN

_SHOWN: Final = 5
NOT_JUDGED: Final = "no captions were judged"


def score_of(benchmark: Benchmark[Any, Any], name: str, records: Sequence[CaptionRecord]) -> float:
    """Return a metric over captions, mean over judge runs.

    Returns:
        ``nan``, with the reason logged once in a run, if too much is unscored or if the metric
        cannot be computed here.
    """
    benchmark, (records,) = weighted(benchmark, [records])
    metric = benchmark.metrics[name]
    reason = metric.unavailable(records)
    if reason is not None:
        if THIS_RUN.is_new(f"{name}: {reason}"):
            logger.info("{} is not computed (N/A), all other metrics stand: {}", name, reason)
        return nan
    if is_nan(name, records):
        return nan
    scores = scores_of(metric, by_run(name, records), records)
    if any(map(isnan, scores)):
        logger.warning("{} has no value | {}", name, signature_of(records))
        return nan
    return fmean(scores)


def values_of(
    benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord], *, max_unscored: float
) -> dict[str, float]:
    """Return each of a benchmark's metrics over captions, as :func:`score_of`, and log nothing.

    Args:
        benchmark: The benchmark.
        records: Captions all of whose questions were asked.
        max_unscored: Largest share of unscored questions that still gives a score, in [0, 1].
    """
    n_questions, n_unscored = _counts(records)
    if not n_questions or Share(n_unscored, n_questions).exceeds(max_unscored):
        return dict.fromkeys(benchmark.metrics, nan)
    return {
        name: nan
        if metric.unavailable(records) is not None
        else _mean(scores_of(metric, by_run(name, records), records))
        for name, metric in benchmark.metrics.items()
    }


def _mean(scores: Sequence[float]) -> float:
    return nan if any(map(isnan, scores)) else fmean(scores)


def total_unscored(records: Sequence[CaptionRecord]) -> int:
    """Count questions without a verdict over all captions and judge runs, and log the reasons."""
    empty = [record.video_id for record in records if record.n_empty]
    n_unscored = sum(record.n_unscored for record in records)
    n_dropped = sum(record.n_dropped for record in records)
    if n_dropped:
        logger.warning(
            "{}: {:,} of {:,} captions are not there and are left out (missing=drop): the scores "
            "are those of the other {:,}",
            records[0].task,
            n_dropped,
            len(records),
            len(records) - n_dropped,
        )
    if empty:
        logger.warning(
            "{}: {} of {} captions are empty, for {}{}; they were not sent and {}",
            records[0].task,
            len(empty),
            len(records),
            ", ".join(empty[:_SHOWN]),
            " and more" if len(empty) > _SHOWN else "",
            "are unscored: the benchmark has no verdict for a caption that says nothing"
            if any(record.n_empty and record.n_unscored for record in records)
            else "count as captions that say nothing",
        )
    if n_unscored and THIS_RUN.is_new(_no_score(records)):
        logger.warning(
            "{}: {} of {} questions are unscored. {}",
            records[0].task,
            n_unscored,
            sum(record.n_questions for record in records),
            _why(records),
        )
    return n_unscored


def is_nan(metric: str, records: Sequence[CaptionRecord]) -> bool:
    """Return whether too much is unscored for a score, and log the reasons once per task."""
    if has_score(records):
        return False
    if not THIS_RUN.is_new(_no_score(records)):
        return True
    n_questions, n_unscored = _counts(records)
    if records and not n_questions:
        is_dropped = all(record.n_dropped for record in records)
        logger.error(
            "{} {} is nan, and so are its other metrics: there is no {} the {} captions",
            records[0].task,
            metric,
            "caption (missing=drop): name a file with captions of these videos; none is there of"
            if is_dropped
            else "question about any of",
            len(records),
        )
        return True
    logger.error(
        "{} {} is nan, and so are its other metrics: {} of {} questions are unscored, at most "
        "{:.2%} may be (LMMS_CAPTIONS_MAX_UNSCORED). {}",
        records[0].task if records else "no caption:",
        metric,
        n_unscored,
        n_questions,
        max_unscored(),
        _why(records),
    )
    return True


def _no_score(records: Sequence[CaptionRecord]) -> str:
    """Return the key of a message that is logged once per task, whichever metric comes first."""
    task = records[0].task if records else ""
    return f"{task}: {len(records)} captions, {_counts(records)}. {_why(records)}"


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
    """Return the signature of a task from the records of its captions.

    Args:
        records: The records.
        args: lmms-eval's command line, if it is known.
    """
    if not records:
        return NOT_JUDGED
    extras = extras_of(records)
    captions = extras.pop(CAPTIONS, None)
    if PRECISION in extras:
        n_all = sum(record.n_population or record.n_questions for record in records)
        # Nothing was asked about captions that are empty or missing.
        n_asked = sum(record.n_questions for record in records if record.n_population)
        asked = Share(n_asked, n_all).words
        extras = {**extras, ASKED: asked}
    questions = [record.questions for record in records if record.questions]
    doubts = doubt_names(records)
    n_suspicious, _ = suspicious(records)
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
    if questions:
        fields[QUESTIONS] = digest_of_all(questions)
    fields |= selection_of(args)
    if doubts:
        fields[DOUBTS] = "+".join(sorted(doubts))
    if n_suspicious:
        fields[SUSPICIOUS] = str(Share(n_suspicious, n_captions))
    fields[DISTRIBUTION] = package_version()
    return str(Signature(first.task, fields))


def sum_over_tasks(values: Sequence[float], _sizes: Sequence[int], _weighted: bool) -> float:
    """Return the sum over the tasks of a group, as its aggregation."""
    return sum(values)


def signatures_of_tasks(values: Sequence[str], sizes: Sequence[int]) -> str:
    """Return the signatures of a group's tasks, with their numbers of captions, as one.

    >>> values = ["a|judge:j|runs:1|empty:1/2", "b|judge:j|runs:3|unscored:0/9"]
    >>> signatures_of_tasks(values, [2, 3])
    'judge:j|runs:1+3|empty:1/5'
    """
    return str(Signature.merge(map(Signature.parse, values), sizes))


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


def _why(records: Sequence[CaptionRecord]) -> str:
    """Return the reasons of unscored questions, and their remedies."""
    reasons, kinds = Counter[str](), Counter[Kind]()
    for record in records:
        reasons.update(record.reasons)
        kinds.update(record.kinds)
    return why_unscored(reasons, kinds)
