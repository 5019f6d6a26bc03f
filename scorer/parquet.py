"""Parquet files of captions, and the files of their scores: complete, or not there."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.scorer.table import COLUMNS, ScoreSpec, TableScorer, schema_of

if TYPE_CHECKING:
    import pyarrow as pa

    from lmms_eval_captions.scorer.table import Rows

MADE_OF: Final = b"lmms_eval_captions"
"""Key of the metadata in which a written file says what it was made of."""
_ROWS: Final = 256
"""Rows of a table."""
_ROWS_DECODED: Final = 16
"""Rows that are decoded at once, before their size is looked at."""
_MOST_BYTES: Final = 64 << 20
"""Size of so many rows, and of columns that are packed tightly, above which a file is refused."""
_MOST_PACKED: Final = 500
"""Bytes of a column per byte in the file; texts of a kind reach a hundred."""
_ROW_GROUP: Final = 16_384
"""Rows that are written at once."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of rows that can be read."""

    path: Path
    n_rows: int
    origin: Mapping[str, Any]
    """Tells the file from others, and from its earlier versions."""
    scores: Path
    """Path of its scores."""


def counted(n: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "row"), counted(2_000, "row"), counted(0, "file")
    ('1 row', '2,000 rows', '0 files')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def open_shard(path: Path, scores: Path, spec: ScoreSpec) -> Shard:
    """Return a shard, whose rows are not read yet.

    :class:`DataError` if it cannot be read, lacks a column or has it twice, or expands too much.
    """
    import pyarrow.parquet as pq

    with reading(path):
        status = path.stat()
        with pq.ParquetFile(path) as file:
            names, metadata = file.schema_arrow.names, file.metadata
        with path.open("rb") as raw:
            raw.seek(-min(1 << 16, status.st_size), os.SEEK_END)
            footer = hashlib.blake2b(raw.read(), digest_size=8).hexdigest()
    needed = [spec.name_of(name) for name in spec.needed]
    missing = [name for name in needed if name not in names]
    if missing:
        ours = next(name for name in COLUMNS if spec.name_of(name) == missing[0])
        raise DataError(
            f"{path}: expected the columns {', '.join(needed)} for {spec.protocol_name}, "
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not there of "
            f"{', '.join(names)}; --column {ours}=NAME says what a column is called"
        )
    repeated = [name for name in spec.read_columns if names.count(name) > 1]
    if repeated:
        raise DataError(f"{path}: expected one column {repeated[0]!r}, there are several")
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for index in range(group.num_columns):
            _require_unpacked(path, group.column(index), spec.read_columns)
    origin = {
        "file": str(path),
        "bytes": status.st_size,
        "changed_ns": status.st_mtime_ns,
        "footer": footer,  # describes the columns and their values
        "n_rows": metadata.num_rows,
        "spec": spec.digest,
    }
    return Shard(path, metadata.num_rows, origin, scores)


def _require_unpacked(path: Path, column: Any, read: Sequence[str]) -> None:  # noqa: ANN401 - of pyarrow
    size, packed = column.total_uncompressed_size, max(1, column.total_compressed_size)
    is_read = any(f"{column.path_in_schema}.".startswith(f"{name}.") for name in read)
    if is_read and size > _MOST_BYTES and size > _MOST_PACKED * packed:
        raise DataError(
            f"{path}: {column.path_in_schema} expands from {packed:,} to {size:,} bytes, more than "
            f"{_MOST_PACKED} times; the file is not read"
        )


def read_shard(
    shard: Shard, spec: ScoreSpec, start: int = 0, stop: int | None = None
) -> Iterator[pa.Table]:
    """Yield rows of a shard from one index to another, some at a time.

    :class:`DataError` if they cannot be read, or take too much memory.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    held: list[pa.RecordBatch] = []
    with reading(shard.path), pq.ParquetFile(shard.path) as file:
        columns = [name for name in spec.read_columns if name in file.schema_arrow.names]
        position, groups = 0, list(range(file.num_row_groups))
        while groups and position + (n := file.metadata.row_group(groups[0]).num_rows) <= start:
            position += n
            del groups[0]
        for batch in file.iter_batches(_ROWS_DECODED, row_groups=groups, columns=columns):
            if batch.nbytes > _MOST_BYTES:
                raise DataError(
                    f"{shard.path}: {batch.num_rows} rows take {batch.nbytes:,} bytes, at most "
                    f"{_MOST_BYTES:,} are read; the file is not scored"
                )
            first, end = max(0, start - position), batch.num_rows
            position += batch.num_rows
            end -= 0 if stop is None else max(0, position - stop)
            if first < end:
                held.append(batch.slice(first, end - first))
            if sum(rows.num_rows for rows in held) >= _ROWS:
                yield pa.Table.from_batches(held)
                held = []
            if stop is not None and position >= stop:
                break
        if held:
            yield pa.Table.from_batches(held)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise what readers raise as a DataError that names the file."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError, MemoryError) as error:
        why = f"cannot be read as Parquet: {error}" if path.exists() else "is not there any more"
        raise DataError(f"{path}: {why}") from error


def is_done(shard: Shard, *, ask_again: bool) -> bool:
    """Return whether the scores of these rows by this spec are there, with nothing to ask again."""
    made_of = origin_of(shard.scores) or {}
    n_open, n_unscored = made_of.pop("n_open", None), made_of.pop("n_unscored", None)
    return made_of == shard.origin and n_open == 0 and not (ask_again and n_unscored)


def origin_of(path: Path) -> dict[str, Any] | None:
    """Return what a file was made of, ``None`` for one that was not written here, or changed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path)
        found = json.loads((metadata.metadata or {})[MADE_OF])
    except (OSError, pa.ArrowException, LookupError, ValueError):
        return None
    is_ours = isinstance(found, dict) and found.get("n_rows") == metadata.num_rows
    return found if is_ours else None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise an error of the operating system as a DataError that names the file."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written: {error}; make room, and run the same command again: "
            "replies are kept, nothing is asked twice"
        ) from error


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that is there once it is complete; a link in place of its draft is not followed.

    :class:`DataError` if it cannot be made; writes to it belong under :func:`writing`.
    """
    draft = path.with_name(f"{path.name}.unfinished")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        file = draft.open("xb")
    try:
        yield file
        with writing(path):
            file.flush()
            os.fsync(file.fileno())
            file.close()
            draft.replace(path)
    finally:
        for end in (file.close, partial(draft.unlink, missing_ok=True)):
            with suppress(OSError):  # a full disk
                end()


def write_scores(
    shards: Sequence[Shard],
    spec: ScoreSpec,
    results: Iterable[Rows],
    failures: dict[Path, str],
    on_done: Callable[[Shard, int], None],
) -> None:
    """Write the scores of shards, which come one after the other; a failure costs its shard.

    Args:
        shards: The shards.
        spec: The spec.
        results: Scores of the shards by their indices.
        failures: Gets the path of each shard that fails, and why.
        on_done: Called with each complete shard, and its number of rows not asked about.
    """
    schema = schema_of(spec)
    for number, tables in groupby(results, key=itemgetter(0)):
        shard = shards[number]
        try:
            n_unasked = _write(shard, schema, (table for _, table in tables))
        except DataError as error:
            failures[shard.path] = str(error)
        else:
            on_done(shard, n_unasked)


def _write(shard: Shard, schema: pa.Schema, tables: Iterable[pa.Table | DataError | None]) -> int:
    """Write a file of scores, unless it lacks rows; return the number of rows not asked about."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    counts, held = Counter[str](), list[pa.Table]()
    with new_file(shard.scores) as file:
        with writing(shard.scores):
            writer: Any = pq.ParquetWriter(file, schema, compression="zstd")
        try:
            for table in tables:
                if isinstance(table, DataError):
                    raise table
                if table is not None:
                    held.append(table)
                    counts["n_rows"] += table.num_rows
                    counts["n_unasked"] += table.column("n_questions").null_count
                    counts["n_open"] += column_sum(table, "is_open")
                    counts["n_unscored"] += column_sum(table, "n_unscored")
                if held and (table is None or sum(map(len, held)) >= _ROW_GROUP):
                    with writing(shard.scores):
                        writer.write_table(pa.concat_tables(held))
                    held.clear()
            if counts["n_rows"] != shard.n_rows:
                raise DataError(
                    f"{shard.path}: expected {counted(shard.n_rows, 'row')}, as it had when it was "
                    f"found, got {counts['n_rows']:,}: it was changed while it was read"
                )
            made_of = {**shard.origin, **{name: counts[name] for name in ("n_open", "n_unscored")}}
            with writing(shard.scores):
                writer.add_key_value_metadata({MADE_OF: json.dumps(made_of)})
                writer.close()
        finally:
            with suppress(OSError, ValueError):  # a full disk
                writer.close()
    return counts["n_unasked"]


def score_here(
    shards: Sequence[Shard], spec: ScoreSpec, on_done: Callable[[Shard, int], None]
) -> dict[Path, str]:
    """Score shards in this process; return the path of each that failed, and why.

    Raises :class:`JudgeStoppedError` if the judge is asked nothing more; complete files stay.
    """
    failures: dict[Path, str] = {}
    with TableScorer(spec, progress=True) as scorer:
        tables = (
            rows
            for number, shard in enumerate(shards)
            for rows in read_part(shards, spec, number, 0, shard.n_rows, failures)
        )
        write_scores(shards, spec, scorer.scored(tables), failures, on_done)
    return failures


def read_part(
    shards: Sequence[Shard],
    spec: ScoreSpec,
    number: int,
    start: int,
    stop: int,
    failures: Collection[Path] = (),
) -> Iterator[Rows]:
    """Yield rows of a shard by its index, from one row to another; not on if it is a failure."""
    shard = shards[number]
    is_last = stop == shard.n_rows
    try:
        for table in read_shard(shard, spec, start, None if is_last else stop):
            if shard.path in failures:  # it cannot be written
                break
            yield number, table
    except DataError as error:
        yield number, error
    else:
        if is_last:
            yield number, None


def column_sum(table: pa.Table, name: str) -> int:
    """Return the sum of a column of whole numbers, or how often it is true, without nulls."""
    import pyarrow.compute as pc

    return int(pc.sum(table.column(name)).as_py() or 0)
