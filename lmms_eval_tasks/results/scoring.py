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
    join_values,
    package_version,
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
    values = dict.fromkeys(benchmark.metrics, nan)
    if has_score(records, max_unscored):
        for name, metric in benchmark.metrics.items():
            if metric.unavailable(records) is None:
                # A run without a value leaves the metric without one.
                values[name] = fmean(scores_of(metric, by_run(name, records), records))
    return values


def total_unscored(records: Sequence[CaptionRecord]) -> int:
    """Count questions without a verdict over all captions and judge runs, and log the reasons."""
    task, n_captions = records[0].task if records else "", len(records)
    n_questions, n_unscored = _counts(records)
    if n_dropped := sum(record.n_dropped for record in records):
        logger.warning(
            f"{task}: {n_dropped:,} of {n_captions:,} captions are not there and are left out "
            f"(missing=drop): the scores are those of the other {n_captions - n_dropped:,}"
        )
    if empty := [record for record in records if record.n_empty]:
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
    task = records[0].task if records else "no caption:"
    if not THIS_RUN.is_new(_no_score(records)):
        return True
    n_questions, n_unscored = _counts(records)
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
    return f"{[record.task for record in records[:1]]}: {len(records)}, {_counts(records)}"


def has_score(records: Sequence[CaptionRecord], limit: float | None = None) -> bool:
    """Return whether the share of unscored questions is within a limit (default: the settings')."""
    n_questions, n_unscored = _counts(records)
    limit = max_unscored() if limit is None else limit
    return n_questions > 0 and not Share(n_unscored, n_questions).exceeds(limit)


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
    extras: dict[str, str | None] = {**extras_of(records)}
    captions = extras.pop(CAPTIONS, None)
    if PRECISION in extras:
        n_all = sum(record.n_population or record.n_questions for record in records)
        # Nothing was asked about captions that are empty or missing.
        n_asked = sum(record.n_questions for record in records if record.n_population)
        extras[ASKED] = Share(n_asked, n_all).words
    first, questions = records[0], [record.questions for record in records if record.questions]
    n_questions, n_unscored = _counts(records)

    def of_captions(n: int) -> str | None:
        return str(Share(n, len(records))) if n else None

    def chosen_by(option: str) -> str | None:
        number = getattr(args, option, None)
        return f"{number:g}" if number and number != -1 else None  # lmms-eval's word for all

    fields = {
        "judge": " + ".join(sorted({record.judge for record in records})),
        "runs": str(first.runs),
        "protocol": str(first.protocol),
        **extras,
        "dropped": of_captions(sum(record.n_dropped for record in records)),
        "empty": of_captions(sum(record.n_empty for record in records)),
        "unscored": str(Share(n_unscored, n_questions)),
        CAPTIONS: captions,
        QUESTIONS: digest_of_all(questions) if questions else None,
        "limit": chosen_by("limit"),
        "offset": chosen_by("offset"),
        DOUBTS: "+".join(sorted(doubts_of(records))) or None,
        SUSPICIOUS: of_captions(suspicious(records)[0]),
        DISTRIBUTION: package_version(),
    }
    return str(Signature(first.task, {k: text for k, text in fields.items() if text is not None}))


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
    return {name: join_values(name, sorted(different)) for name, different in values.items()}
