"""From the records of a task's captions to what lmms-eval prints and saves."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Final, TypeVar

from loguru import logger

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.verdict import Usage
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN, Judged, PendingRecord, Record
from lmms_eval_captions.lmms_eval_tasks.reasons import why_unscored
from lmms_eval_captions.lmms_eval_tasks.signature import Share, Signature, join_values

if TYPE_CHECKING:
    import argparse

J = TypeVar("J")
_SHOWN: Final = 5


def resolve(items: Iterable[Record]) -> list[Record]:
    """Wait for every record; those that came from other ranks are complete already."""
    return [item.wait() if isinstance(item, PendingRecord) else item for item in items]


def mean_over_runs(
    metric: str, items: Sequence[Record], per_run: Callable[[], Sequence[float]]
) -> float:
    """Mean over judge runs of a score, logged with its deviation and the signature.

    Args:
        metric: Metric shown in the log.
        items: The resolved records of the task's captions, see :func:`head_of`.
        per_run: Computes one score a judge run; not called where too much is unscored.

    Returns:
        The mean, or ``nan`` (with an error logged) where too many questions are unscored.
    """

    def mean() -> float:
        scores = per_run()
        if any(map(isnan, scores)):
            # pstdev raises for nan; a metric may have no value (nothing was answered, say).
            logger.warning("{} has no value | {}", metric, signature_of(items))
            return nan
        spread = f" (standard deviation {pstdev(scores):.4f} over {len(scores)} judge runs)"
        logger.info(
            "{} = {:.4f}{} | {}",
            metric,
            fmean(scores),
            spread if len(scores) > 1 else "",
            signature_of(items),
        )
        return fmean(scores)

    return score_or_nan(mean, metric=metric, items=items)


def aggregate_unscored(items: Sequence[Record]) -> int:
    """Aggregation of ``unscored`` in every benchmark: over all captions and judge runs."""
    records = resolve(items)
    empty = [item for item in records if item["n_empty"]]
    if empty:
        videos = [str(item["video_id"]) for item in empty]
        logger.warning(
            "{}: {} of {} captions are empty, for {}{}; they were not sent and {}",
            records[0]["task"],
            len(empty),
            len(records),
            ", ".join(videos[:_SHOWN]),
            " and more" if len(empty) > _SHOWN else "",
            "are unscored: the benchmark has no verdict for a caption that says nothing"
            if count(empty, "n_unscored")
            else "count as captions that say nothing",
        )
    n_unscored = count(records, "n_unscored")
    if n_unscored:
        logger.warning(
            "{}: {} of {} questions are unscored. {}",
            records[0]["task"],
            n_unscored,
            count(records, "n_questions"),
            _why(records),
        )
    return n_unscored


def aggregate_signature(items: Sequence[Record]) -> str:
    """Aggregation of ``signature`` in every benchmark: what moved the score, in one line."""
    return signature_of(resolve(items))


def write_breakdown(
    breakdown: Mapping[str, object], *, task: str, args: argparse.Namespace | None
) -> Path | None:
    """Write a task's full breakdown as one JSON file beside lmms-eval's results.

    Args:
        breakdown: What to write.
        task: Name of the task, part of the file's name.
        args: lmms-eval's command line, handed to an aggregation that has a parameter ``args``.

    Returns:
        The file, or ``None`` where lmms-eval has no ``--output_path`` or the file cannot be written
        (which is logged).
    """
    output_path = getattr(args, "output_path", None)
    if not output_path:
        return None
    path = Path(output_path) / f"{time.strftime('%Y%m%d_%H%M%S')}_breakdown_{task}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(breakdown, indent=2, ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        logger.error("the breakdown of {} cannot be written to {}: {}", task, path, error)
        return None
    logger.info("breakdown of {} written to {}", task, path)
    return path


def score_or_nan(score: Callable[[], float], *, metric: str, items: Sequence[Record]) -> float:
    """A score, or ``nan`` with a logged error where too many questions are unscored.

    Args:
        score: Computes the score.
        metric: Metric shown in the message.
        items: The resolved records, each with ``n_questions`` and ``n_unscored``.
    """
    n_questions, n_unscored = count(items, "n_questions"), count(items, "n_unscored")
    try:
        max_unscored = JUDGE_RUN.settings().max_unscored
    except SettingsError:
        max_unscored = 0.0  # every record says why nothing was judged
    if not n_questions or n_unscored > max_unscored * n_questions:
        logger.error(
            "{} {} is nan: {} of {} questions are unscored, at most {:.2%} may be "
            "(LMMS_CAPTIONS_MAX_UNSCORED). {}",
            items[0]["task"] if items else "no caption:",
            metric,
            n_unscored,
            n_questions,
            max_unscored,
            _why(items),
        )
        return nan
    return score()


def count(items: Iterable[Record], name: str) -> int:
    """Sum of a count over records."""
    return sum(int(str(item[name])) for item in items)


def signature_of(items: Sequence[Record]) -> str:
    """The signature of a task from the records of its captions, as :class:`Signature` prints it."""
    if not items:
        return "no captions were judged"
    first = items[0]
    return str(
        Signature.of_task(
            str(first["task"]),
            " + ".join(sorted({str(item["judge"]) for item in items})),
            int(str(first["runs"])),
            int(str(first["protocol"])),
            extras=_extras(items),
            unscored=Share(count(items, "n_unscored"), count(items, "n_questions")),
            empty=Share(count(items, "n_empty"), len(items)),
        )
    )


def _extras(items: Sequence[Record]) -> dict[str, str]:
    """Further fields of the signature; values that differ between captions are joined."""
    found: dict[str, dict[str, None]] = {}
    for item in items:
        extras = item["extras"]
        for name, value in extras.items() if isinstance(extras, dict) else ():
            found.setdefault(name, {})[value] = None
    return {name: join_values(name, sorted(values)) for name, values in found.items()}


def head_of(
    judged: Judged[J], *, task: str, video_id: str, n_questions: int, n_scored: int, **extras: str
) -> Record:
    """What every record of a caption holds: counts, reasons, and what :func:`signature_of` needs.

    Args:
        judged: The caption's judgements.
        task: Task shown in the signature.
        video_id: The video.
        n_questions: Questions times runs.
        n_scored: Those that have a verdict.
        extras: What else moves this benchmark's score.
    """
    config = judged.config
    n_unscored = n_questions - n_scored
    return {
        "task": task,
        "video_id": video_id,
        "judge": config.label if config else "none",
        "runs": config.runs if config else 0,
        "protocol": config.protocol if config else 0,
        "extras": extras,
        "n_questions": n_questions,
        "n_unscored": n_unscored,
        "n_empty": int(judged.caption == "empty"),
        **({"no_caption": judged.reason} if judged.caption == "missing" else {}),
        "reasons": {judged.reason: n_unscored} if judged.reason is not None and n_unscored else {},
    }


def report_usage(task: str, model: str, usage: Usage) -> None:
    """Tell lmms-eval's usage table and ``--max_tokens`` what one caption's judging cost."""
    if usage.n_calls:
        from lmms_eval.models.model_utils.usage_metrics import log_usage

        log_usage(
            model_name=model,
            task_name=task,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            source="judge",
        )


def _why(items: Sequence[Record]) -> str:
    """Why questions are unscored, and what helps."""
    reasons: Counter[str] = Counter()
    for item in items:
        counted = item.get("reasons")
        if isinstance(counted, dict):
            reasons.update(counted)
    return why_unscored(reasons, n_missing=sum("no_caption" in item for item in items))


def sum_over_tasks(values: Sequence[float], _sizes: Sequence[int], _weighted: bool) -> float:
    """Group aggregation: the sum over the group's tasks."""
    return sum(values)


def signatures_of_tasks(values: Sequence[str], sizes: Sequence[int], _weighted: bool) -> str:
    """Group aggregation: the tasks' signatures in one, without names and counts of tasks.

    >>> values = ["a|judge:j|runs:1|empty:1/2", "b|judge:j|runs:3|unscored:0/9"]
    >>> signatures_of_tasks(values, [2, 3], False)
    'judge:j|runs:1+3|empty:1/5'
    """
    return str(Signature.merge(map(Signature.parse, values), sizes))
