"""Verdicts of one task of one run: a Parquet file next to the results, a row per judged question.

Every run writes it as ``<date>_verdicts_<task>.parquet``, with or without sample logs;
:mod:`analysis.task_table` reads it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.files import whole, write_atomically
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results.scoring import extras_of

METADATA: Final = b"lmms_eval_captions"
"""Key of the JSON object that says what was judged, in the file's metadata."""
VERDICT: Final = "verdict"
SCORE: Final = "score"
CHEAP: Final = "cheap_"
"""Prefix of the columns that hold what a cheap judge said, see ``LMMS_CAPTIONS_CHEAP_JUDGE``."""
_INTEGERS: Final = frozenset(
    {"caption", "question_index", "run", "input_tokens", "output_tokens", "n_words"}
)

Row = dict[str, object]


def verdict_path(folder: Path, stamp: str, task: str) -> Path:
    """Path of a task's verdicts in a run's folder, whose files begin with ``stamp``."""
    return folder / f"{stamp}_verdicts_{task}.parquet"


def value_columns(benchmark: Benchmark[Any, Any]) -> dict[str, str]:
    """Column that each metric reads: ``verdict`` for labels, ``score`` for the only number.

    Several numbers, such as the dimensions of G-VEval, are columns named like their metrics.
    """
    sources = {name: benchmark.source_of_values(name) for name in benchmark.metrics}
    numeric = {source for source in sources.values() if not benchmark.metrics[source].labels}
    number = SCORE if len(numeric) == 1 else ""
    return {
        name: VERDICT if source not in numeric else number or source
        for name, source in sources.items()
    }


def write_verdicts(
    path: Path,
    head: Mapping[str, object],
    benchmark: Benchmark[Any, Any],
    records: Sequence[CaptionRecord],
) -> None:
    """Write the verdicts of a task; ``head`` is the task, the model and its arguments.

    Raises:
        OSError: If the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = value_columns(benchmark)
    rows = [row for index, of in enumerate(records) for row in _rows(index, of, columns, benchmark)]
    arrays = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = (row.get(name) for row in rows)
        texts = [whole(value) if isinstance(value, str) else value for value in values]
        arrays[name] = pa.array(texts, pa.int32() if name in _INTEGERS else None)
    metadata = {
        **head,
        "n_rows": len(rows),
        "benchmark": benchmark.name,
        "judge": " + ".join(sorted({record.judge for record in records})),
        "runs": max((record.runs for record in records), default=0),
        "protocol": max((record.protocol for record in records), default=0),
        "extras": extras_of(records),
        "values": columns,
        "sections": list(dict.fromkeys(name for record in records for name in record.groups)),
        "fields": list(dict.fromkeys(name for record in records for name in _fields(record))),
    }
    table = pa.table(arrays).replace_schema_metadata({METADATA: json.dumps(metadata).encode()})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    write_atomically(path, buffer.getvalue())


def _rows(
    index: int, record: CaptionRecord, columns: Mapping[str, str], benchmark: Benchmark[Any, Any]
) -> list[Row]:
    """Return a row per judge run and question; of a caption without any, one that says so."""
    caption: Row = {
        "video": record.video_id,
        "caption": index,
        "n_words": record.n_words,
        "caption_digest": record.caption_digest,
        "questions_digest": record.questions,
        "no_caption": record.no_caption,
        "is_empty": bool(record.n_empty),
        "is_dropped": bool(record.n_dropped),
        **_fields(record),
    }
    metrics, sample = benchmark.metrics, record.sample
    sources = {columns[name]: name for name in reversed(list(metrics))}
    n_runs = max(map(len, record.values.values()), default=0)
    rows: list[Row] = []
    for run in range(n_runs):
        verdicts = {
            column: _by_question(record.values[name][run], metrics[name].n_values)
            for column, name in sources.items()
        }
        n = len(next(iter(verdicts.values())))
        of_run: dict[str, Sequence[object]] = {
            "run": [run] * n,
            "question_index": range(n),
            "question": [*record.asked, *[None] * n][:n],
            **verdicts,
            **{section: names[run] for section, names in record.groups.items()},
            "reason": record.unscored_because[run] if record.unscored_because else [None] * n,
        }
        if record.tokens:
            of_run["input_tokens"] = [n_input for n_input, _ in record.tokens[run]]
            of_run["output_tokens"] = [n_output for _, n_output in record.tokens[run]]
        if sample is not None:
            of_run |= {"weight": sample.weights, "lam": [sample.lam] * n}
            for name, cheap in sample.cheap.items():
                of_question = _by_question(cheap[0], metrics[name].n_values)
                of_run[f"{CHEAP}{columns[name]}"] = of_question
        rows += [
            {**caption, **dict(zip(of_run, values, strict=True))}
            for values in zip(*of_run.values(), strict=True)
        ]
    return rows or [{**caption, "run": n_runs - 1 if n_runs else None}]


def _by_question(values: Sequence[Any], n_values: int) -> Sequence[Any]:
    if n_values == 1:
        return values
    return [list(values[at : at + n_values]) for at in range(0, len(values), n_values)]


def _fields(record: CaptionRecord) -> Row:
    """Return the benchmark's own numbers and texts of a caption, such as its tokens."""
    return {
        name: value
        for name, value in record.fields.items()
        if isinstance(value, int | float | str | None)
    }
