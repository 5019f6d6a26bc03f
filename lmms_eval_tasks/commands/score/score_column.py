"""The scores of all shards as arrays, and the names of their clips, read file by file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.commands.score.shards import column_sum, reading
from lmms_eval_captions.lmms_eval_tasks.commands.score.table_scorer import HALVES

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


_SUMMED: Final = (
    "n_questions", "n_unscored", "why_unscored", "is_empty", "parts", "judged_by",
)  # fmt: skip
"""Columns that are counted and added up; captions and verdicts stay on disk."""


@dataclass(slots=True)
class Scores:
    """What a summary is made of, in the order of the files and of their rows."""

    headline: NDArray[np.float64]
    """Shape (n_clips,): each clip's score, ``nan`` where it has none."""
    halves: NDArray[np.float64]
    """Shape (n_clips, 2): by every other question, or judge run."""
    sums: list[list[float]]
    """Of the clips' ``parts``."""
    first_share: float = 0.5
    """Share of a clip's questions, or judge runs, that is in its first half, mean over clips."""
    n_questions: int = 0
    n_unscored: int = 0
    n_empty: int = 0
    n_unasked: int = 0
    """Rows that could not be asked about."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why questions are unscored, or rows not asked about, to the number of rows."""
    judged_by: Counter[str] = field(default_factory=Counter)
    """Signature without counts, to the number of clips."""


class ClipIds(Sequence[str]):
    """Names of all clips, in the order of :class:`Scores`.

    Args:
        files: Files of scores.

    Raises:
        DataError: If one cannot be read.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        import pyarrow as pa

        tables = [table.column("clip_id") for table in tables_of(files, ["clip_id"])]
        chunks = [chunk for column in tables for chunk in column.chunks]
        self.names = pa.chunked_array(chunks, pa.string()).combine_chunks()

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 - as a sequence's
        return str(self.names[int(place)].as_py())

    @property
    def n_repeated(self) -> int:
        """Rows whose name is that of a row before."""
        import pyarrow.compute as pc

        n_named = len(self.names) - self.names.null_count
        n_different = pc.count_distinct(self.names, mode="only_valid").as_py()
        return int(n_named - n_different)


def read_scores(files: Sequence[Path], headline: str, n_metrics: int) -> Scores:
    """The scores of all files.

    Args:
        files: Files of scores.
        headline: The metric.
        n_metrics: Metrics that have parts.

    Raises:
        DataError: If one cannot be read.
    """
    columns: list[NDArray[np.float64]] = []
    halves: list[NDArray[np.float64]] = []
    sums: list[NDArray[np.float64]] = []
    counts_of_clips: list[NDArray[np.float64]] = []
    shape: list[int] = []
    scores = Scores(np.empty(0), np.empty((0, 2)), [])
    for table in tables_of(files, [headline, *HALVES, *_SUMMED]):
        columns.append(_numbers(table, headline))
        halves.append(np.stack([_numbers(table, name) for name in HALVES], axis=1))
        scores.n_questions += column_sum(table, "n_questions")
        scores.n_unscored += column_sum(table, "n_unscored")
        scores.n_empty += column_sum(table, "is_empty")
        scores.n_unasked += table.column("n_questions").null_count
        for name, counts in (("why_unscored", scores.reasons), ("judged_by", scores.judged_by)):
            for each in table.column(name).drop_null().value_counts().to_pylist():
                counts[each["values"]] += each["counts"]
        shape, numbers = _parts(table, shape)
        sums.extend(numbers)
        counts_of_clips.append(_numbers(table, "n_questions"))
    if columns:
        scores.headline, scores.halves = np.concatenate(columns), np.concatenate(halves)
        n_runs = max(1, len(shape) // max(1, n_metrics))
        scores.first_share = _first_share(np.concatenate(counts_of_clips), n_runs)
    totals = [fsum(column) for column in zip(*sums, strict=True)]
    ends = np.cumsum(shape).tolist()
    scores.sums = [totals[end - n : end] for n, end in zip(shape, ends, strict=True)]
    return scores


def tables_of(files: Sequence[Path], columns: Sequence[str] | None) -> Iterator[pa.Table]:
    """The rows of files of scores, a row group at a time.

    Raises:
        DataError: If one cannot be read.
    """
    import pyarrow.parquet as pq

    for path in files:
        with reading(path), pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, columns=columns)


def _first_share(n_questions: NDArray[np.float64], n_runs: int) -> float:
    """Share of the first half, mean over clips.

    Args:
        n_questions: Of each clip, times judge runs; ``nan`` where it was not asked about.
        n_runs: Judge runs.
    """
    n = n_questions[n_questions > 0] / n_runs
    n = np.where(n > 1, n, n_runs)
    n = n[n > 1]  # the others have one half
    return float(np.mean(np.ceil(n / 2) / n)) if len(n) else 0.5


def _numbers(table: pa.Table, name: str) -> NDArray[np.float64]:
    column: Any = table.column(name)
    return np.asarray(column.cast("float64").fill_null(float("nan")), dtype=np.float64)


def _parts(table: pa.Table, shape: list[int]) -> tuple[list[int], list[NDArray[np.float64]]]:
    """Lengths of a row's parts, and their sum over the rows that have any."""
    rows = table.column("parts").drop_null().combine_chunks()
    if not len(rows):
        return shape, []
    shape = [len(part) for part in rows[0].as_py()]
    numbers = np.asarray(rows.flatten().flatten(), dtype=np.float64).reshape(len(rows), sum(shape))
    return shape, [np.array([fsum(column) for column in numbers.T])]
