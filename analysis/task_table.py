"""Verdicts of finished runs: tables with a row per caption, question and judge run, aligned."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lmms_eval_captions.analysis.tables import plural
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results.verdict_file import METADATA
from lmms_eval_captions.lmms_eval_tasks.signature import (
    ASKED,
    CHEAP,
    COUNTS,
    DISTRIBUTION,
    DOUBTS,
    PRECISION,
    QUESTIONS,
    SERVED,
    UNAVAILABLE,
    Signature,
)
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_TEXT: Final = "text"
_INTEGER: Final = "whole numbers"
_COLUMNS: Final = {
    "video": _TEXT, "caption": _INTEGER, "run": _INTEGER, "n_words": _INTEGER,
    "caption_digest": _TEXT, "questions_digest": _TEXT, "no_caption": _TEXT,
}  # fmt: skip
_COLUMNS_OF_QUESTIONS: Final = {"question_index": _INTEGER, "question": _TEXT, "reason": _TEXT}
"""Columns that a file lacks if nothing was asked about any caption."""
_AGAIN: Final = "score the captions again, which asks the judge nothing that it was asked before"


@dataclass(frozen=True)
class TaskTable:
    """Verdicts on one captioner's captions in one task."""

    task: str
    benchmark: Benchmark[Any, Any]
    signature: Signature
    head: dict[str, Any]
    """The file's metadata: model, arguments, judge, value columns, sections and fields."""
    rows: pd.DataFrame
    """A row per caption, question and judge run, in the file's order.

    A caption about which nothing was asked has one row without a question. ``copy`` counts earlier
    captions of the same video, ``occurrence`` earlier questions with the same text.
    """

    @property
    def n_runs(self) -> int:
        """Judge runs of the caption that has most."""
        return int(self.rows["run"].add(1).fillna(0).max()) if len(self.rows) else 0

    @property
    def is_sampled(self) -> bool:
        """True if a sample of the questions was judged."""
        return "weight" in self.rows

    def only(self, rows: pd.DataFrame) -> TaskTable:
        """Return the same task with other rows."""
        return replace(self, rows=rows)

    @cached_property
    def records(self) -> list[CaptionRecord]:
        """The captions as metrics see them, without values."""
        rows = self.captions()
        # Counts that a caption lacks are floats in pandas.
        fields = rows[list(self.head["fields"])].convert_dtypes().astype(object)
        known = fields.where(fields.notna(), None).to_dict("records") or [{}] * len(rows)
        return [
            CaptionRecord(
                task=self.task, video_id=video, fields=of_caption, extras=self.head["extras"],
                judge="", runs=0, protocol=0, n_questions=0, n_unscored=0,
            )
            for video, of_caption in zip(rows["video"], known, strict=True)
        ]  # fmt: skip

    def asked(self) -> pd.DataFrame:
        """Return the rows with a question."""
        return self.rows[self.rows["question_index"].notna()]

    def captions(self) -> pd.DataFrame:
        """Return the first row of each caption."""
        return self.rows.drop_duplicates("caption")


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Verdicts on one captioner's captions in a task or a group of tasks."""

    name: str
    tables: tuple[TaskTable, ...]
    """The task itself, or the tasks of the group."""
    is_pooled: bool
    """True if the group's numbers are over all questions together, not means of its tasks'."""

    @property
    def benchmark(self) -> Benchmark[Any, Any]:
        """The benchmark of all tasks."""
        return self.tables[0].benchmark

    @property
    def is_sampled(self) -> bool:
        """True if a sample of the questions was judged."""
        return any(table.is_sampled for table in self.tables)

    def rows(self) -> pd.DataFrame:
        """Return the rows of all tasks, with a column ``task``."""
        import pandas as pd

        return pd.concat([table.rows.assign(task=table.task) for table in self.tables])

    def videos(self) -> set[str]:
        """Return the ids of all videos."""
        return {video for table in self.tables for video in table.rows["video"].unique()}


def merged(tables: Sequence[TaskTable]) -> TaskTable:
    """Return the captions of several tasks as one table."""
    import pandas as pd

    if len(tables) == 1:
        return tables[0]
    rows = pd.concat([table.rows.assign(task=table.task) for table in tables], ignore_index=True)
    rows["caption"] = rows.groupby(["task", "caption"], sort=False).ngroup()
    head = dict(tables[0].head)
    for name in ("fields", "sections"):
        head[name] = list(dict.fromkeys(of for table in tables for of in table.head[name]))
    head["extras"] = {k: value for table in tables for k, value in table.head["extras"].items()}
    return replace(tables[0], head=head, rows=rows.drop(columns="task"))


def read_table(path: Path, task: str) -> TaskTable:
    """Read the verdict file of a task.

    Raises:
        DataError: If the file is missing, cut off, or not as this version writes it; the message
            names the file and the column.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise DataError(f"{path}: no such file; {_AGAIN}")
    try:
        table = pq.read_table(path)
        head = json.loads((table.schema.metadata or {})[METADATA])
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        what = f"not a verdict file, or cut off ({error!r:.200})"
        raise DataError(f"{path}: {what}; {_AGAIN}") from error
    value_columns = dict.fromkeys((head.get("values") or {}).values())
    if "question_index" not in table.column_names:
        for name in (*value_columns, *_COLUMNS_OF_QUESTIONS):
            table = table.append_column(name, pa.nulls(len(table)))
    benchmark = our_benchmarks()[task]
    for problem in _problems(table, head, benchmark):
        raise DataError(f"{path}{problem}; {_AGAIN}")
    rows = table.to_pandas()
    for name in value_columns:
        # Labels, numbers or lists as metrics read them, None for unscored.
        rows[name] = pd.Series(table[name].to_pylist(), dtype=object)
    videos = rows.drop_duplicates("caption").set_index("caption")["video"]
    rows["copy"] = rows["caption"].map(videos.groupby(videos).cumcount())
    texts = rows["question"].fillna("")
    rows["occurrence"] = rows.groupby(["caption", rows["run"].fillna(-1), texts]).cumcount()
    return TaskTable(task, benchmark, Signature.parse(str(head.get("signature"))), head, rows)


def _problems(
    table: pa.Table, head: Mapping[str, Any], benchmark: Benchmark[Any, Any]
) -> Iterator[str]:
    """Yield why a table cannot be used."""
    import pyarrow as pa

    if (n_rows := head.get("n_rows")) != len(table):
        yield f": expected the {n_rows} rows that were written, got {len(table)}"
    columns = head.get("values") or {}
    yield from (f": no column for the metric {of}" for of in benchmark.metrics if of not in columns)
    others = dict.fromkeys((*columns.values(), *head.get("fields", ())), "")
    sections = dict.fromkeys(head.get("sections", ()), _TEXT)
    for name, kind in {**others, **_COLUMNS, **_COLUMNS_OF_QUESTIONS, **sections}.items():
        if name not in table.column_names:
            yield f": no column {name!r}"
        found = table.schema.field(name).type
        is_text = pa.types.is_string(found) or pa.types.is_large_string(found)
        is_right = is_text if kind == _TEXT else pa.types.is_integer(found)
        if kind and not is_right and not pa.types.is_null(found):
            yield f", column {name!r}: expected {kind}, got {found}"
    for name, metric in benchmark.metrics.items():
        known = {None, *metric.labels}
        unknown = set(table[columns[name]].to_pylist()) - known if metric.labels else ()
        if unknown:
            expected = ", ".join(metric.labels)
            yield f", column {columns[name]!r}: expected {expected}, got {min(unknown)!r:.80}"


_MAY_DIFFER: Final = frozenset(
    {
        # Counts: what not all captioners have is left out, question by question.
        "unscored", *COUNTS, "limit", "offset", QUESTIONS,
        # A sample of the questions is unbiased for all of them.
        PRECISION, ASKED, CHEAP,
        # Doubts about a judge are shown next to the numbers.
        DOUBTS,
        # The field "protocol" says what affects scores from version to version.
        DISTRIBUTION,
    }
)  # fmt: skip
"""Fields of the signature in which captioners that are compared may differ."""


def differences(signatures: Sequence[Signature]) -> Mapping[str, list[str]]:
    """Return the fields that affect a score and differ between captioners, of one task.

    Each has its value for every captioner, ``none`` if it has none.
    """
    found = {}
    for name in dict.fromkeys(name for signature in signatures for name in signature.fields):
        values = [signature.fields.get(name, "none") for signature in signatures]
        # Nothing is known of a judge that does not name its version.
        known = {value for value in values if value != "none" or name != SERVED}
        # A metric that could not be computed is not compared.
        if name not in _MAY_DIFFER and len(known) > 1 and UNAVAILABLE not in known:
            found[name] = values
    return found


class Counts(NamedTuple):
    """Captions and questions that all sides have, and those left out."""

    n_videos: int = 0
    n_captions: int = 0
    n_questions: int = 0
    """Questions that all sides have a verdict on."""
    n_other_captions: int = 0
    """Captions that not all sides have."""
    n_other_questions: int = 0
    """Questions about shared captions that were not asked of all sides."""
    n_unscored: int = 0
    """Questions on which a side has no verdict in any judge run."""
    n_other_answers: int = 0
    """Shared captions whose questions have other gold answers or categories on some side."""

    def left_out(self) -> str:
        """Describe what was left out; empty if nothing was.

        >>> Counts(n_other_captions=2, n_unscored=1).left_out()
        '2 captions that not all have, 1 question without a verdict in one of them'
        """
        counted = (
            (self.n_other_captions, "caption", "that not all have"),
            (self.n_other_questions, "question", "not asked of all"),
            (self.n_unscored, "question", "without a verdict in one of them"),
        )
        return ", ".join(f"{plural(n, what)} {why}" for n, what, why in counted if n)

    def scope(self) -> str:
        """Describe in a sentence, without its stop, what was compared."""
        left_out = self.left_out()
        return (
            f"Compared on {self.n_questions:,} questions about {self.n_videos:,} videos that all "
            f"have a verdict on{f'; left out: {left_out}' if left_out else ''}"
        )


def align(several: Sequence[Verdicts]) -> tuple[list[Verdicts], Counts]:
    """Cut verdicts down to the questions that all sides have a verdict on.

    Captions are matched by task and video, questions by their text; repeated ones by their order. A
    question without a verdict in any judge run of one side is left out of all.

    Raises:
        DataError: If they are of different tasks.
    """
    sides = [{table.task: table for table in verdicts.tables} for verdicts in several]
    if any(side.keys() != sides[0].keys() for side in sides):
        names = "; ".join(map(", ".join, sides))
        raise DataError(
            f"{several[0].name}: expected the same tasks in all runs, got {names}; compare the "
            "tasks that all have with --tasks"
        )
    aligned = [align_task([side[task] for side in sides]) for task in sides[0]]
    found = [
        replace(verdicts, tables=tuple(tables[side] for tables, _ in aligned))
        for side, verdicts in enumerate(several)
    ]
    total = Counts(*map(sum, zip(*(counts for _, counts in aligned), strict=True)))
    return found, total._replace(n_videos=len(found[0].videos()))


def align_task(tables: Sequence[TaskTable]) -> tuple[list[TaskTable], Counts]:
    """Cut the tables of one task down to what all of them have, see :func:`align`."""
    import pandas as pd

    n_sides, benchmark = len(tables), tables[0].benchmark
    rows = pd.concat(
        [table.rows.assign(side=side) for side, table in enumerate(tables)], ignore_index=True
    )
    caption = rows.groupby(["video", "copy"], sort=False).ngroup()
    # A caption that was left out (missing=drop) has no judge run.
    is_judged = ~rows["is_dropped"] & rows["run"].notna()
    n_judged = rows["side"].where(is_judged).groupby(caption).transform("nunique")
    is_shared = is_judged & (n_judged == n_sides)
    n_shared = caption[is_shared].nunique()
    n_other_captions = caption[is_judged].nunique() - n_shared
    rows, caption = rows[is_shared], caption[is_shared]
    is_question = rows["question_index"].notna()
    if not benchmark.counts_ahead:
        # The judge's replies say what was asked: there is nothing to match questions by.
        n_questions = int((is_question & (rows["side"] == 0)).sum())
        counts = Counts(rows["video"].nunique(), n_shared, n_questions, n_other_captions)
        return _split(tables, rows), counts
    key = rows.groupby([caption, rows["question"].fillna(""), "occurrence"], sort=False).ngroup()
    n_asked = rows["side"].where(is_question).groupby(key).transform("nunique")
    is_other = is_question & (n_asked < n_sides)
    is_asked = is_question & (n_asked == n_sides)
    columns = tables[0].head["values"]
    n_values = {columns[name]: metric.n_values for name, metric in benchmark.metrics.items()}
    is_scored = {}
    for name, n in n_values.items():
        rows[name], is_scored[name] = _scored_by_all(rows, name, n, key)
    kept = is_asked & is_scored[columns[benchmark.headline]]
    # Of the captions of which all sides were asked the same.
    differs = rows["questions_digest"].groupby(caption).transform("nunique") > 1
    differs &= ~is_other.groupby(caption).transform("any")
    counts = Counts(
        rows["video"].nunique(), n_shared, key[kept].nunique(), n_other_captions,
        key[is_other].nunique(), key[is_asked & ~kept].nunique(), caption[differs].nunique(),
    )  # fmt: skip
    # Captions stay although none of their questions does: their words and tokens count.
    is_empty = ~kept.groupby([caption, rows["side"]]).transform("any")
    blank = is_empty & ~rows.duplicated(["side", "caption"])
    rows.loc[blank, ["question_index", "question", *n_values]] = None
    return _split(tables, rows[kept | blank]), counts


def _scored_by_all(
    rows: pd.DataFrame, name: str, n_values: int, key: pd.Series[Any]
) -> tuple[pd.Series[Any], pd.Series[Any]]:
    """Return the values that every side has in some judge run, and whether there is any.

    A question may have several values, such as the dimensions of G-VEval.
    """
    import pandas as pd

    wide = rows[[name]].astype(object)
    if n_values > 1:
        values = [[None] * n_values if of is None else of for of in rows[name]]
        wide = pd.DataFrame(values, rows.index, dtype=object)
    has_value = wide.notna()
    if "weight" in rows:
        # The asked questions of a sample stand for those that it left out, which stay.
        has_value[rows["weight"] == 0] = True
    of_questions = has_value.groupby([key, rows["side"]]).any().groupby(level=0).all()
    is_known = of_questions.to_numpy()[key]
    kept = wide.where(is_known, None)
    is_scored = pd.Series(is_known.any(axis=1), rows.index)
    if n_values == 1:
        return kept[name], is_scored
    return pd.Series(kept.to_numpy().tolist(), rows.index, dtype=object), is_scored


def _split(tables: Sequence[TaskTable], rows: pd.DataFrame) -> list[TaskTable]:
    return [
        table.only(rows[rows["side"] == side].drop(columns="side"))
        for side, table in enumerate(tables)
    ]
