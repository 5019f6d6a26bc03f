"""Verdicts of one task of a finished run: a row per caption, question and judge run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
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
from lmms_eval_captions.lmms_eval_tasks.verdict_file import METADATA

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_TEXT: Final = "text"
_INTEGER: Final = "whole numbers"
_TYPES: Final = {
    "video": _TEXT, "caption": _INTEGER, "run": _INTEGER, "n_words": _INTEGER,
    "caption_digest": _TEXT, "questions_digest": _TEXT, "no_caption": _TEXT,
}  # fmt: skip
_TYPES_OF_QUESTIONS: Final = {"question_index": _INTEGER, "question": _TEXT, "reason": _TEXT}
"""Columns that a file may lack if nothing was asked about any caption."""
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
        run = self.rows["run"].max()
        return 0 if run != run else int(run) + 1

    @property
    def is_sampled(self) -> bool:
        """True if a sample of the questions was judged."""
        return "weight" in self.rows

    @cached_property
    def metric_captions(self) -> list[Any]:
        """The captions as metrics see them: ``video_id``, ``fields`` and ``extras``."""
        rows = self.captions()
        names = list(self.head["fields"])
        columns = [rows[name].tolist() for name in names]
        return [
            SimpleNamespace(
                video_id=video,
                fields={name: _field(value) for name, value in zip(names, values, strict=True)},
                extras=self.head["extras"],
            )
            for video, *values in zip(rows["video"].tolist(), *columns, strict=True)
        ]

    def asked(self) -> pd.DataFrame:
        """Return the rows with a question."""
        return self.rows[self.rows["question_index"].notna()]

    def captions(self) -> pd.DataFrame:
        """Return the first row of each caption."""
        return self.rows.drop_duplicates("caption")

    def only(self, rows: pd.DataFrame) -> TaskTable:
        """Return the same task with other rows."""
        return replace(self, rows=rows)


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

    def task(self, name: str) -> Verdicts:
        """Return one of the tasks by itself."""
        return Verdicts(name, tuple(t for t in self.tables if t.task == name), is_pooled=False)


def merged(tables: Sequence[TaskTable]) -> TaskTable:
    """Return the captions of several tasks as one table."""
    import pandas as pd

    if len(tables) == 1:
        return tables[0]
    rows, n_captions = [], 0
    for table in tables:
        rows.append(table.rows.assign(caption=table.rows["caption"] + n_captions))
        n_captions += int(table.rows["caption"].max()) + 1
    fields = dict.fromkeys(name for table in tables for name in table.head["fields"])
    sections = dict.fromkeys(name for table in tables for name in table.head["sections"])
    extras = {name: value for table in tables for name, value in table.head["extras"].items()}
    head = {
        **tables[0].head, "fields": list(fields), "sections": list(sections), "extras": extras,
    }  # fmt: skip
    return replace(tables[0], head=head, rows=pd.concat(rows, ignore_index=True))


def read_table(path: Path, task: str) -> TaskTable:
    """Read the verdict file of a task.

    Raises:
        DataError: If the file is missing, cut off, or not as this version writes it; the message
            names the file and the column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise DataError(f"{path}: no such file; {_AGAIN}")
    try:
        table = pq.read_table(path)
        head = json.loads((table.schema.metadata or {})[METADATA])
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        raise DataError(
            f"{path}: not a verdict file, or cut off ({error!r:.200}); {_AGAIN}"
        ) from error
    _check_rows(path, table, head.get("n_rows"))
    benchmark = our_benchmarks()[task]
    columns: dict[str, str] = head.get("values") or {}
    missing = [name for name in benchmark.metrics if name not in columns]
    if missing:
        raise DataError(f"{path}: no column for the metric {missing[0]}; {_AGAIN}")
    has_questions = "question_index" in table.column_names
    _check_types(path, table, _TYPES | (_TYPES_OF_QUESTIONS if has_questions else {}))
    _check_types(path, table, dict.fromkeys(head.get("sections", ()), _TEXT))
    for name in [*columns.values(), *_TYPES_OF_QUESTIONS, *head.get("fields", ())]:
        if name not in table.column_names:
            if has_questions:
                raise DataError(f"{path}: no column {name!r}; {_AGAIN}")
            table = table.append_column(name, pa.nulls(len(table), pa.string()))
    rows = table.to_pandas()
    for name, metric in benchmark.metrics.items():
        labels = set(rows[columns[name]].dropna()) if metric.labels else set()
        unknown = labels - set(metric.labels)
        if unknown:
            raise DataError(
                f"{path}, column {columns[name]!r}: expected {', '.join(metric.labels)}, got "
                f"{min(unknown)!r:.80}; {_AGAIN}"
            )
    captions = rows.drop_duplicates("caption").set_index("caption")["video"]
    rows["copy"] = rows["caption"].map(captions.groupby(captions).cumcount())
    texts = rows["question"].fillna("")
    rows["occurrence"] = rows.groupby(["caption", rows["run"].fillna(-1), texts]).cumcount()
    for column in dict.fromkeys(columns.values()):
        rows[column] = _plain(rows[column])
    return TaskTable(task, benchmark, Signature.parse(str(head.get("signature"))), head, rows)


def _plain(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return values as metrics read them: labels, numbers or lists, ``None`` for unscored."""
    import pandas as pd

    def plain(value: Any) -> Any:  # noqa: ANN401 - of any type that a column has
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, list):
            return [plain(each) for each in value]
        return None if value is None or value != value else value

    return pd.Series([plain(value) for value in column.tolist()], column.index, dtype=object)


def _field(value: Any) -> Any:  # noqa: ANN401 - of any type that a column has
    if value is None or value != value:
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_rows(path: Path, table: pa.Table, n_rows: object) -> None:
    if n_rows != len(table):
        raise DataError(
            f"{path}: expected the {n_rows} rows that were written, got {len(table)}; {_AGAIN}"
        )


def _check_types(path: Path, table: pa.Table, types: dict[str, str]) -> None:
    import pyarrow as pa

    for name, kind in types.items():
        if name not in table.column_names:
            raise DataError(f"{path}: no column {name!r}; {_AGAIN}")
        found = table.schema.field(name).type
        is_right = pa.types.is_integer(found) if kind == _INTEGER else _is_text(found)
        if not is_right and not pa.types.is_null(found):
            raise DataError(f"{path}, column {name!r}: expected {kind}, got {found}; {_AGAIN}")


def _is_text(found: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(found):
        found = found.value_type
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found))


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
    """Return the fields that affect a score and are not the same for all captioners.

    Args:
        signatures: One task's, of each captioner.

    Returns:
        Field to its value for each captioner, ``none`` if it has none.
    """
    names = dict.fromkeys(name for signature in signatures for name in signature.fields)
    found = {}
    for name in names:
        values = [signature.fields.get(name, "none") for signature in signatures]
        # Nothing is known of a judge that does not name its version.
        known = {value for value in values if value != "none" or name != SERVED}
        # A metric that could not be computed is not compared.
        if name not in _MAY_DIFFER and len(known) > 1 and UNAVAILABLE not in known:
            found[name] = values
    return found
