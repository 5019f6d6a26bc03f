"""Verdict tables of finished runs, as :mod:`lmms_eval_tasks.verdict_file` writes them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
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


@dataclass(frozen=True, slots=True)
class TaskTable:
    """Verdicts on one captioner's captions in one task."""

    task: str
    benchmark: Benchmark[Any, Any]
    signature: Signature
    head: dict[str, Any]
    """The file's metadata: model, arguments, judge, value columns, sections and fields."""
    rows: pd.DataFrame
    """A row per caption, question and judge run, in the file's order."""


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
        values = rows[columns[name]].dropna()
        unknown = set(values.unique()) - set(metric.labels) if metric.labels else set()
        if unknown:
            raise DataError(
                f"{path}, column {columns[name]!r}: expected {', '.join(metric.labels)}, got "
                f"{min(unknown)!r:.80}; {_AGAIN}"
            )
    return TaskTable(task, benchmark, Signature.parse(str(head.get("signature"))), head, rows)


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
