"""Parquet files of captions, and the files of their scores: complete, or not there."""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.scorer.table import (
    COLUMNS,
    ScoreSpec,
    TableScorer,
    filled,
    open_captioner,
    schema_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER: Final = "scores"
"""Folder in the output folder with a file for each shard."""
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


def find_shards(pattern: str) -> list[Path]:
    """Return files by a name, a folder of Parquet files or a pattern, by name, with links resolved.

    Raises:
        SettingsError: If there are none.
    """
    path = Path(pattern).expanduser()
    if path.is_dir():
        found = sorted(path.glob("*.parquet"))
    elif path.exists():
        found = [path]
    else:
        # A pattern may be absolute, which Path.glob does not take.
        found = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207
    shards = [each.resolve() for each in found if each.is_file()]
    if not shards:
        raise SettingsError(f"--in: expected Parquet files, none is there of {pattern!r}")
    return shards


def score_files(paths: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Return the path of each shard's scores: its name, with the folders that differ.

    Args:
        paths: Resolved, each once.
        folder: The output folder.

    Raises:
        SettingsError: If two would be one file, or one would replace a shard.
    """
    common = Path(os.path.commonpath([path.parent for path in paths]))
    files: dict[Path, Path] = {}
    for path in paths:
        name = path.relative_to(common)
        if name.suffix != ".parquet":
            name = name.with_name(f"{name.name}.parquet")
        files[path] = folder / FOLDER / name
    taken: dict[Path, Path] = {}
    for path, scores in files.items():
        other = taken.setdefault(scores.resolve(), path)
        if other != path:
            raise SettingsError(
                f"--in: the scores of {other} and of {path} would be one file, {scores}; score "
                "them into different folders"
            )
        if scores.resolve() in files:
            raise SettingsError(
                f"--out: the scores of {path} would replace {scores}, which is to be scored; name "
                "another folder"
            )
    return files


def open_shard(path: Path, scores: Path, spec: ScoreSpec) -> Shard:
    """Return a shard, whose rows are not read yet.

    Raises:
        DataError: If the file cannot be read, lacks a column or has it twice, or would take too
            much memory.
    """
    import pyarrow.parquet as pq

    with reading(path):
        status = path.stat()
        with pq.ParquetFile(path) as file:
            names, metadata = file.schema_arrow.names, file.metadata
        footer = _footer(path)
    missing = [name for name in spec.columns if name not in names]
    if missing:
        ours = next(name for name in COLUMNS if spec.name_of(name) == missing[0])
        raise DataError(
            f"{path}: expected the columns {', '.join(spec.columns)} for {spec.protocol_name}, "
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
        "footer": footer,
        "n_rows": metadata.num_rows,
        "spec": spec.digest,
    }
    return Shard(path, metadata.num_rows, origin, scores)


def _footer(path: Path) -> str:
    """Return a digest of a file's end, which describes its columns and their values."""
    with path.open("rb") as file:
        file.seek(-min(1 << 16, file.seek(0, os.SEEK_END)), os.SEEK_END)
        return hashlib.blake2b(file.read(), digest_size=8).hexdigest()


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
    """Yield rows of a shard, some at a time.

    Args:
        shard: The shard.
        spec: Names the columns.
        start: Index of the first row.
        stop: Index after the last row (default: all).

    Raises:
        DataError: If they cannot be read to the end, or take too much memory.
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
    """Return whether a shard's scores are there, of these rows by this spec, with nothing to ask.

    Args:
        shard: The shard.
        ask_again: Ask again what was unreadable.
    """
    made_of = origin_of(shard.scores) or {}
    n_open, n_unscored = made_of.pop("n_open", None), made_of.pop("n_unscored", None)
    return made_of == shard.origin and n_open == 0 and not (ask_again and n_unscored)


def origin_of(path: Path) -> dict[str, Any] | None:
    """Return what a file was made of, ``None`` for a file that was not written here."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path).metadata or {}
        found = json.loads(metadata[MADE_OF])
    except (OSError, pa.ArrowException, LookupError, ValueError):
        return None
    return found if isinstance(found, dict) else None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise what cannot be written as a DataError that names the file."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written: {error}; make room, and run the same command again: "
            "replies are kept, nothing is asked twice"
        ) from error


def unfinished(path: Path) -> Path:
    """Return the path of a file until it is complete."""
    return path.with_name(f"{path.name}.unfinished")


def new_file(path: Path) -> IO[bytes]:
    """Open a new file in place of one that an earlier run left; a link is not followed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    return path.open("xb")


class ScoreFiles:
    """Writes the scores of shards, which come one after the other; a failure costs its shard.

    Args:
        shards: The shards.
        spec: The spec.
        on_done: Called with each shard whose scores are complete, and the number of its rows that
            could not be asked about.

    Attributes:
        failures: Path of each shard that failed, to why.
    """

    def __init__(
        self, shards: Sequence[Shard], spec: ScoreSpec, on_done: Callable[[Shard, int], None]
    ) -> None:
        self._shards = shards
        self._schema = schema_of(spec)
        self._on_done = on_done
        self.failures: dict[Path, str] = {}
        self._begin()

    def __enter__(self) -> ScoreFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop()

    def take(self, number: int, scores: pa.Table | DataError | None) -> None:
        """Take the next scores of a shard, why there are none, or ``None`` at its end."""
        shard = self._shards[number]
        if shard.path in self.failures:
            return
        try:
            if isinstance(scores, DataError):
                raise scores
            with writing(shard.scores):
                if scores is not None:
                    self._write(shard, scores)
                    return
                self._finish(shard)
        except DataError as error:
            self.failures[shard.path] = str(error)
            self._drop()
        else:
            self._on_done(shard, self._counts["n_unasked"])
        self._begin()

    def _begin(self) -> None:
        self._counts: Counter[str] = Counter()
        self._rows: list[pa.Table] = []
        self._file: IO[bytes] | None = None
        self._writer: Any = None

    def _write(self, shard: Shard, table: pa.Table) -> None:
        self._counts["n_rows"] += table.num_rows
        self._counts["n_unasked"] += table.column("n_questions").null_count
        for name in ("is_open", "n_unscored"):
            self._counts[name] += column_sum(table, name)
        self._rows.append(table)
        if sum(rows.num_rows for rows in self._rows) >= _ROW_GROUP:
            self._flush(shard)

    def _finish(self, shard: Shard) -> None:
        """Move the file to its path, unless it lacks rows of the shard."""
        n_rows = self._counts["n_rows"]
        if n_rows != shard.n_rows:
            raise DataError(
                f"{shard.path}: expected {counted(shard.n_rows, 'row')}, as it had when it was "
                f"found, got {n_rows:,}: it was changed while it was read"
            )
        self._flush(shard)
        counts = {"n_open": self._counts["is_open"], "n_unscored": self._counts["n_unscored"]}
        self._writer.add_key_value_metadata({MADE_OF: json.dumps({**shard.origin, **counts})})
        self._writer.close()
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()
        unfinished(shard.scores).replace(shard.scores)

    def _flush(self, shard: Shard) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._file is None:
            self._file = new_file(unfinished(shard.scores))
            self._writer = pq.ParquetWriter(self._file, self._schema, compression="zstd")
        if self._rows:
            self._writer.write_table(pa.concat_tables(self._rows))
        self._rows = []

    def _drop(self) -> None:
        """Remove what was written of a shard."""
        if self._file is None:
            return
        for close in (self._writer.close, self._file.close, Path(self._file.name).unlink):
            with suppress(OSError, ValueError):  # a full disk
                close()


def score_here(
    shards: Sequence[Shard], spec: ScoreSpec, on_done: Callable[[Shard, int], None]
) -> dict[Path, str]:
    """Score shards in this process; one that fails does not affect the others.

    Args:
        shards: In the order in which they are scored.
        spec: The spec.
        on_done: See :class:`ScoreFiles`.

    Returns:
        Path of each shard that failed, to why.

    Raises:
        JudgeStoppedError: If the judge is asked nothing more; complete files stay.
        SettingsError: If it cannot be asked.
    """
    with (
        open_captioner(spec) or nullcontext() as captioner,
        ScoreFiles(shards, spec, on_done) as files,
        TableScorer(spec, progress=True) as scorer,
    ):

        def tables() -> Iterator[tuple[int, pa.Table | DataError | None]]:
            for number, shard in enumerate(shards):
                try:
                    for table in read_shard(shard, spec):
                        if shard.path in files.failures:  # it cannot be written
                            break
                        yield number, filled(table, spec, captioner)
                except DataError as error:
                    yield number, error
                else:
                    yield number, None

        for number, scores in scorer.scored(tables()):
            files.take(number, scores)
        return files.failures


def column_sum(table: pa.Table, name: str) -> int:
    """Return the sum of a column of whole numbers, or how often it is true, without nulls."""
    import pyarrow.compute as pc

    return int(pc.sum(table.column(name)).as_py() or 0)
