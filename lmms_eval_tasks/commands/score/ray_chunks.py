"""What travels through Ray: a few rows of one shard at a time, packed.

Ray Data joins, splits and converts the tables that it is handed. Rows that are packed as Arrow's
own bytes keep their types, whatever other shards hold, and no column of a user's can meet one of
ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict

import pyarrow as pa
import pyarrow.parquet as pq

from lmms_eval_captions.judges.errors import CaptionsError, DataError
from lmms_eval_captions.lmms_eval_tasks.commands.score.shards import changed, reading

_ROWS_AT_ONCE: Final = 1024
_PACKAGE: Final = "chunks"
_SCHEMA: Final = pa.schema(
    [
        pa.field("shard", pa.int64()),
        pa.field("start", pa.int64()),
        pa.field("rows", pa.large_binary()),
        pa.field("error", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Shard:
    """A Parquet file to score."""

    path: str
    """Where it is; the same place on every node."""
    n_rows: int
    """Rows that it has, by its footer."""


class Chunk(TypedDict):
    """Rows of one shard that follow each other, or why no more of them can be read."""

    shard: int
    """Index of the shard."""
    start: int
    """Index of the first row within the shard."""
    rows: bytes
    """The rows in Arrow's stream format; empty where there is an error."""
    error: str
    """Why the rest of the shard cannot be read; empty where it can."""


def packed(table: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpacked(rows: bytes) -> pa.Table:
    """The table that was packed."""
    with pa.ipc.open_stream(rows) as reader:
        return reader.read_all()


def chunks_of(
    shard_index: int, shard: Shard, columns: list[str] | None, n_rows: int
) -> Iterator[tuple[Chunk, int]]:
    """The rows of a shard in order, then an error where it could not be read to its end.

    Args:
        shard_index: What to call the shard.
        shard: The file.
        columns: Columns to read of those that the shard has, ``None`` for all.
        n_rows: Rows of a chunk, at most.

    Yields:
        Chunks in order, each with its number of rows. A file that is gone, broken or has other
        rows than before is an error in the last one, so that the other shards go on.
    """
    start = 0
    try:
        with reading(Path(shard.path)), pq.ParquetFile(shard.path) as file:
            there = file.schema_arrow.names
            read = None if columns is None else [name for name in columns if name in there]
            for batch in file.iter_batches(max(n_rows, _ROWS_AT_ONCE), columns=read):
                table = pa.Table.from_batches([batch])
                for offset in range(0, table.num_rows, n_rows):
                    part = table.slice(offset, n_rows)
                    yield (
                        Chunk(shard=shard_index, start=start, rows=packed(part), error=""),
                        part.num_rows,
                    )
                    start += part.num_rows
    except DataError as error:
        yield Chunk(shard=shard_index, start=start, rows=b"", error=str(error)), 0
        return
    if start != shard.n_rows:
        reason = changed(Path(shard.path), shard.n_rows, start)
        yield Chunk(shard=shard_index, start=start, rows=b"", error=reason), 0


def package(chunks: Sequence[Chunk]) -> pa.Table:
    """Chunks as one row of Ray's, which Ray does not take apart."""
    table = pa.Table.from_pylist([dict(chunk) for chunk in chunks], schema=_SCHEMA)
    return pa.table({_PACKAGE: pa.array([packed(table)], pa.large_binary())})


def chunks_in(table: pa.Table) -> list[Chunk]:
    """The chunks of all packages of a table."""
    chunks: list[Chunk] = []
    for value in table[_PACKAGE]:
        chunks.extend(unpacked(value.as_py()).to_pylist())
    return chunks


def packages_of(
    shards: Iterable[tuple[int, Shard]], columns: list[str] | None, n_rows: int
) -> Iterator[pa.Table]:
    """The rows of several shards, small shards together.

    Args:
        shards: Each with what to call it.
        columns: Columns to read, ``None`` for all.
        n_rows: Rows of a package: fewer in the last one, at most twice as many in others.
    """
    waiting: list[Chunk] = []
    n_waiting = 0
    for shard_index, shard in shards:
        for chunk, n_chunk_rows in chunks_of(shard_index, shard, columns, n_rows):
            waiting.append(chunk)
            n_waiting += n_chunk_rows
            if n_waiting >= n_rows:
                yield package(waiting)
                waiting, n_waiting = [], 0
    if waiting:
        yield package(waiting)


class RowCounts:
    """How many rows of each shard have come, none twice, none left out, in order."""

    def __init__(self, shards: list[Shard]) -> None:
        self._shards = shards
        self._n_seen = [0] * len(shards)

    def add(self, chunk: Chunk, n_rows: int) -> None:
        """Count the rows of a chunk.

        Raises:
            CaptionsError: If they are not those that follow the ones that came before.
        """
        expected = self._n_seen[chunk["shard"]]
        if chunk["start"] != expected:
            path = self._shards[chunk["shard"]].path
            raise CaptionsError(
                f"{path}: expected row {expected} next, got row {chunk['start']}: Ray handed rows "
                "out of order; run the same command again"
            )
        self._n_seen[chunk["shard"]] += n_rows

    def incomplete(self) -> list[str]:
        """Paths of shards whose rows have not all come."""
        return [
            shard.path
            for shard, n_seen in zip(self._shards, self._n_seen, strict=True)
            if n_seen != shard.n_rows
        ]
