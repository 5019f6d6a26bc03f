"""What the page's script reads: names and columns, verdicts as bytes, texts in blocks."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lmms_eval_captions.analysis.report.lengths import LENGTHS, lengths_of
from lmms_eval_captions.analysis.report.pairs import Paired, ShownView
from lmms_eval_captions.analysis.report.rows import (
    Row,
    codes_of,
    flips_of,
    kinds_of,
    n_runs_of,
    value_of,
)
from lmms_eval_captions.analysis.report.shape import Section, figure, overall_of
from lmms_eval_captions.analysis.report.sources import View
from lmms_eval_captions.analysis.verdicts.shown import sections_of as sections_asked
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

Document = dict[str, Any]
"""Of JSON's types."""

_NO_GROUP: Final = 65_535
_JUDGED, _EMPTY, _NO_CAPTION, _ABSENT = range(4)
"""What a captioner has of a row."""


@dataclass(slots=True)
class Columns:
    """The rows of all tasks as columns, and what judges said of their questions as bytes."""

    n_runs: Sequence[int]
    """Judge runs of each captioner, the most of any task."""
    n_questions: int = 0
    _tasks: list[Document] = field(default_factory=list)
    _rows: list[Document] = field(default_factory=list)
    _groups: list[array[int]] = field(default_factory=list)
    _codes: list[bytearray] = field(default_factory=list)
    """For each captioner and judge run."""

    def add(self, view: View, rows: Sequence[Row]) -> None:
        """Add the rows of a task.

        Args:
            view: The task.
            rows: All of them.
        """
        benchmark = view.benchmark
        kinds = kinds_of(benchmark)
        sections = _sections(view)
        while len(self._groups) < len(sections):
            self._groups.append(array("H", [_NO_GROUP]) * self.n_questions)
        self._codes = self._codes or [bytearray() for n in self.n_runs for _ in range(n)]
        self._tasks.append({
            "name": view.name,
            "benchmark": benchmark.name,
            "n_runs": [n_runs_of(verdicts) for verdicts in view.verdicts],
            "labels": [{"name": label, "kind": kind} for label, kind in kinds.items()],
            "sections": [{"name": name, "groups": list(map(whole, g))} for name, g in sections],
        })  # fmt: skip
        codes = [{group: code for code, group in enumerate(groups)} for _, groups in sections]
        labels = {label: code for code, label in enumerate(kinds)}
        for row in rows:
            self._add(benchmark, row, [name for name, _ in sections], codes, labels)

    def _add(
        self,
        benchmark: Benchmark[Any, Any],
        row: Row,
        sections: Sequence[str],
        codes: Sequence[dict[str, int]],
        labels: dict[str, int],
    ) -> None:
        n = len(row.asked)
        self._rows.append(
            {
                "task": len(self._tasks) - 1,
                "video": whole(row.video_id),
                "first": self.n_questions,
                "n": n,
                "captioners": [_of_captioner(benchmark, record) for record in row.records],
            }
        )
        for place, column in enumerate(self._groups):
            of_questions = row.groups(sections[place]) if place < len(sections) else [None] * n
            column.extend(
                codes[place].get(group, _NO_GROUP) if group is not None else _NO_GROUP
                for group in of_questions
            )
        columns = iter(self._codes)
        for captioner, n_runs in enumerate(self.n_runs):
            for run in range(n_runs):
                next(columns).extend(codes_of(benchmark, labels, row, captioner, run))
        self.n_questions += n

    def document(self) -> Document:
        """Tasks and rows, as the script reads them."""
        captioners = range(len(self.n_runs))
        metrics = dict.fromkeys(
            name for row in self._rows for one in row["captioners"] for name in one["values"]
        )

        def column(name: str) -> list[list[object]]:
            return [[row["captioners"][c][name] for row in self._rows] for c in captioners]

        return {
            "tasks": self._tasks,
            "n_questions": self.n_questions,
            "n_sections": len(self._groups),
            "rows": {
                **{
                    name: [row[name] for row in self._rows]
                    for name in ("task", "video", "first", "n")
                },
                **{name: column(name) for name in ("state", "flips", *LENGTHS)},
                "values": {
                    metric: [
                        [row["captioners"][c]["values"].get(metric) for row in self._rows]
                        for c in captioners
                    ]
                    for metric in metrics
                },
            },
        }

    def questions(self) -> bytes:
        """Groups and verdicts of all questions, little endian."""
        for column in self._groups:
            if sys.byteorder == "big":
                column.byteswap()
        return b"".join([*(column.tobytes() for column in self._groups), *map(bytes, self._codes)])


def view_document(shown: ShownView, tasks: Sequence[int]) -> Document:
    """What the script shows of a view.

    Args:
        shown: A task or group, with what is found out for it.
        tasks: Places of its tasks among all of the page.
    """
    view = shown.view
    overall = overall_of(view)
    benchmark = view.benchmark
    return {
        "name": view.name,
        "tasks": list(tasks),
        "headline": benchmark.headline,
        "headline_means": benchmark.headline_means,
        "metrics": [
            {
                "name": name,
                "lowest": metric.lowest,
                "highest": metric.highest,
                "higher_is_better": metric.higher_is_better,
            }
            for name, metric in benchmark.metrics.items()
        ],
        "overall": {
            name: [figure(figures.get(name)) for figures in overall] for name in benchmark.metrics
        },
        "shape": [_shape(benchmark, section) for section in shown.sections],
        "pairs": [_pair(paired) for paired in shown.pairs],
        "lengths": lengths_of(view),
    }


def _sections(view: View) -> list[tuple[str, list[str]]]:
    """The sections of a task's questions with their groups, those of the benchmark first."""
    found: dict[str, dict[str, int]] = {}
    for verdicts in view.verdicts:
        for section, groups in sections_asked(verdicts).items() if verdicts is not None else ():
            counts = found.setdefault(section, {})
            for group, n in groups.items():
                counts[group] = counts.get(group, 0) + n
    known = view.benchmark.sections
    return [
        (
            section,
            [
                *(name for name in known.get(section, ()) if name in counts),
                *sorted(
                    (name for name in counts if name not in known.get(section, ())),
                    key=lambda name: -counts[name],
                ),
            ][:_NO_GROUP],
        )
        for section, counts in found.items()
    ]


def _of_captioner(benchmark: Benchmark[Any, Any], record: CaptionRecord | None) -> Document:
    if record is None:
        return {"state": _ABSENT, "flips": None, "values": {}, **dict.fromkeys(LENGTHS)}
    if record.n_dropped or record.no_caption is not None:
        state = _NO_CAPTION
    else:
        state = _EMPTY if record.n_empty else _JUDGED
    n_differ, n_known = flips_of(benchmark, record)
    values = {name: value_of(benchmark, name, record) for name in benchmark.metrics}
    return {
        "state": state,
        "flips": n_differ / n_known if n_known else None,
        "values": {name: None if v is None else round(v, 4) for name, v in values.items()},
        **{name: of(record) for name, of in LENGTHS.items()},
    }


def _shape(benchmark: Benchmark[Any, Any], section: Section) -> Document:
    return {
        "section": section.name,
        "groups": list(map(whole, section.groups)),
        "is_radar": section.is_radar,
        "values": {
            metric: [
                [figure(figures.get(group, {}).get(metric)) for group in section.groups]
                for figures in section.figures
            ]
            for metric in benchmark.metrics
        },
        "n_questions": [[n.get(group) for group in section.groups] for n in section.n_questions],
    }


def _pair(paired: Paired) -> Document:
    rows = []
    for row, contrast in paired.rows:
        section, group = row.group or ("overall", "all")
        found = contrast.difference
        rows.append({
            "section": section, "group": whole(group), "metric": row.metric,
            "difference": found.difference, "low": found.low, "high": found.high,
            "p": contrast.p_value, "outcome": contrast.outcome,
        })  # fmt: skip
    return {
        "baseline": 0, "other": paired.other, "summary": whole(paired.summary),
        "found": {metric: whole(words) for metric, words in paired.found.items()}, "rows": rows,
    }  # fmt: skip
