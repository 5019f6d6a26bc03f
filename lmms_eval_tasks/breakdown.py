"""A benchmark's micro-averaged metrics, for all questions and for every group of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any, Final

from loguru import logger

from lmms_eval_captions.lmms_eval_tasks.judge_run import Record
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecords
from lmms_eval_captions.lmms_eval_tasks.scoring import (
    mean_over_runs,
    signature_of,
    write_breakdown,
)

if TYPE_CHECKING:
    import argparse

Figure = float | int | None
"""A metric's mean over judge runs or a count; ``None`` where the metric has no value."""
Breakdown = dict[str, dict[str, dict[str, Figure]]]
"""Section (such as ``categories``), to a group's name, to its figures."""

N_QUESTIONS: Final = "n_questions"
N_UNSCORED: Final = "n_unscored"


@dataclass(frozen=True, slots=True)
class MicroAverages:
    """A benchmark's metrics over the questions of all captions together."""

    metrics: Mapping[str, Callable[[Sequence[Any]], float]]
    """Name to function of the verdicts of one judge run, in percent."""
    groups: Callable[[Record], Sequence[Iterable[tuple[str, str]]]]
    """For each question of a record, the (section, name) pairs it counts in."""
    order: Mapping[str, Sequence[str]]
    """Sections and their known names, as they are to be listed."""

    def headline(self, metric: str, records: Sequence[Record]) -> float:
        """A metric in percent, mean over judge runs; ``nan`` where too much is unscored."""
        return mean_over_runs(
            metric,
            records,
            lambda: [self.metrics[metric](run) for run in verdicts_by_run(records)],
        )

    def report(
        self, records: Sequence[Record], args: argparse.Namespace | None, **head: object
    ) -> None:
        """Show the breakdown, and write it beside lmms-eval's results with ``head`` on top."""
        task, signature = str(records[0]["task"]), signature_of(records)
        breakdown = break_down(records, groups=self.groups, metrics=self.metrics, order=self.order)
        logger.info("{}\n{}", signature, table_of(breakdown, self.metrics))
        whole = {"task": task, "signature": signature, **head, **breakdown}
        write_breakdown(whole, task=task, args=args)


def scored_item(records: CaptionRecords[Any], metric: Callable[[Sequence[Any]], float]) -> Record:
    """A caption's item of a metric in percent: its verdicts, and its own ``score`` in [0, 1].

    There is no ``score`` where the metric has no value for this caption.

    Args:
        records: The judged caption; its judgements have a ``verdict``.
        metric: Function of the verdicts of one judge run.
    """
    nothing = [None] * records.n_questions
    verdicts = [[j.verdict for j in run] or nothing for run in records.by_run()]
    scores = [value / 100.0 for value in map(metric, verdicts) if not isnan(value)]
    head = {**records.unscored(), "verdicts": verdicts}
    return {"score": fmean(scores), **head} if scores else head


def verdicts_by_run(items: Iterable[Record]) -> list[list[Any]]:
    """The verdicts of all captions together, shape (n_runs, n_questions)."""
    runs: list[list[Any]] = []
    for item in items:
        for run, verdicts in enumerate(listed(item, "verdicts")):
            if run == len(runs):
                runs.append([])
            runs[run] += verdicts
    return runs


def break_down(
    items: Iterable[Record],
    *,
    groups: Callable[[Record], Sequence[Iterable[tuple[str, str]]]],
    metrics: Mapping[str, Callable[[Sequence[Any]], float]],
    order: Mapping[str, Sequence[str]],
) -> Breakdown:
    """Every metric for every group of questions.

    Args:
        items: Resolved records with ``verdicts``, shape (n_runs, n_questions).
        groups: For each question of a record, the (section, name) pairs it counts in.
        metrics: Name to function of the verdicts of one judge run.
        order: Sections and their known names, as they are to be listed; further names follow.

    Returns:
        For each group that has questions: each metric's mean over judge runs, where there are
        several also its deviation as ``<metric>_std``, the questions and, over all runs, how many
        of them are unscored.
    """
    cells: dict[tuple[str, str], list[list[Any]]] = {
        (section, name): [] for section, names in order.items() for name in names
    }
    for item in items:
        groups_of = [tuple(pairs) for pairs in groups(item)]
        for run, verdicts in enumerate(listed(item, "verdicts")):
            for pairs, verdict in zip(groups_of, verdicts, strict=True):
                for pair in pairs:
                    runs = cells.setdefault(pair, [])
                    while len(runs) <= run:
                        runs.append([])
                    runs[run].append(verdict)
    breakdown: Breakdown = {section: {} for section in order}
    for (section, name), runs in cells.items():
        if runs:
            breakdown.setdefault(section, {})[name] = _figures(runs, metrics)
    return breakdown


def table_of(breakdown: Breakdown, metrics: Iterable[str]) -> str:
    """A breakdown as text, a line a group.

    >>> figures = {"ar": 50.0, "ir": None, "n_questions": 2, "n_unscored": 0}
    >>> print(table_of({"overall": {"all": figures}}, ["ar", "ir"]))
    overall                                ar      ir  questions  unscored
      all                               50.00       -          2         0
    """
    return "\n".join(_lines(breakdown, list(metrics)))


def _lines(breakdown: Breakdown, metrics: Sequence[str]) -> Iterator[str]:
    for section, rows in breakdown.items():
        heads = "".join(f"{metric:>8}" for metric in metrics)
        yield f"{section:<33}{heads}{'questions':>11}{'unscored':>10}"
        for name, figures in rows.items():
            values = "".join(f"{_shown(figures[metric]):>8}" for metric in metrics)
            yield f"  {name:<31}{values}{figures[N_QUESTIONS]:>11,}{figures[N_UNSCORED]:>10,}"


def _shown(value: Figure) -> str:
    return "-" if value is None else f"{value:.2f}"


def _figures(
    runs: Sequence[Sequence[Any]], metrics: Mapping[str, Callable[[Sequence[Any]], float]]
) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for name, metric in metrics.items():
        values = [value for value in map(metric, runs) if not isnan(value)]
        figures[name] = fmean(values) if values else None
        if len(runs) > 1:
            figures[f"{name}_std"] = pstdev(values) if values else None
    figures[N_QUESTIONS] = max(map(len, runs))
    figures[N_UNSCORED] = sum(verdict is None for run in runs for verdict in run)
    return figures


def listed(record: Mapping[str, object], name: str) -> list[Any]:
    """A field that is a list, of a record or a document."""
    value = record[name]
    if not isinstance(value, list):
        raise TypeError(f"expected a list of {name}, got {value!r:.80}")
    return value
